"""``licences.toml``: the licences of the main components of a stack."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.solution import Component
from toolkit.versions import older

OWN_LICENCE = "Apache-2.0"
"""The licence of toolkit itself, and of its modules in images; ``LICENSE`` has its text."""

REFERENCE = "LicenseRef-"
"""Prefix of a licence that the SPDX list does not have; its name follows."""


class Licence(Row, frozen=True, kw_only=True):
    """``spdx`` is an identifier of the SPDX list, ``name`` is the name of a licence without one.

    ``until`` holds earlier licences, the oldest first: the release that ended each, and its identifier.
    """

    spdx: str = ""
    name: str = ""
    until: dict[str, str] = msgspec.field(default_factory=dict)

    def of(self, version: str) -> str:
        """Return the SPDX identifier that applies to a version; empty if there is none."""
        return next((spdx for end, spdx in self.until.items() if older(version, end)), self.spdx)

    def term(self, version: str) -> str:
        """Return the licence as a term of an SPDX expression: its identifier, or a ``LicenseRef``."""
        return self.of(version) or REFERENCE + re.sub(r"[^A-Za-z0-9.]+", "-", self.name)


@cache
def licences() -> dict[Component, Licence]:
    """Return the rows of the shipped file, by component."""
    return read("licences", dict[Component, Licence])


def terms(versions: Mapping[str, str]) -> dict[Component, str]:
    """Return the licences of the components of a stack, as terms of an SPDX expression.

    ``versions`` holds the version of each component. Components without a row (the base) are left out.
    """
    return {name: row.term(versions[name]) for name, row in licences().items() if name in versions}


def expression(found: Iterable[str]) -> str:
    """Return the SPDX expression for toolkit and components with these licences."""
    return " AND ".join((OWN_LICENCE, *sorted({*found} - {OWN_LICENCE})))
