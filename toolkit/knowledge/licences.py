"""``licences.toml``: the licences of the main components of a stack."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.solution import Component
from toolkit.versions import older

OWN_LICENCE = "Apache-2.0"
"""The licence of toolkit, and of toolkit's modules in images; ``LICENSE`` has its text."""

REFERENCE = "LicenseRef-"
"""Prefix of the name of a licence that is not on the SPDX list."""


class Licence(Row, frozen=True, kw_only=True):
    """The licence of a component.

    ``spdx`` is an identifier of the SPDX list. ``name`` is the name of a licence that is not on the list.
    ``until`` has earlier licences, the oldest first: first release without the licence → SPDX identifier.
    """

    spdx: str = ""
    name: str = ""
    until: dict[str, str] = msgspec.field(default_factory=dict)

    def of(self, version: str) -> str:
        """Return the SPDX identifier of the licence of a version; empty if the licence is not on the SPDX
        list.
        """
        return next((spdx for end, spdx in self.until.items() if older(version, end)), self.spdx)

    def term(self, version: str) -> str:
        """Return the licence as a term of an SPDX expression: its identifier, or a ``LicenseRef``."""
        return self.of(version) or REFERENCE + re.sub(r"[^A-Za-z0-9.]+", "-", self.name)


@cache
def licences() -> dict[Component, Licence]:
    """Return component → licence, from the shipped file."""
    return read("licences", dict[Component, Licence])


def terms(versions: Mapping[str, str]) -> dict[Component, str]:
    """Return component → licence as a term of an SPDX expression.

    ``versions`` has the version of each component of a stack. Components without a row, such as the base, are
    left out.
    """
    return {name: row.term(versions[name]) for name, row in licences().items() if name in versions}


def expression(found: Iterable[str]) -> str:
    """Return the SPDX expression for toolkit and for components with these licences."""
    return " AND ".join((OWN_LICENCE, *sorted({*found} - {OWN_LICENCE})))
