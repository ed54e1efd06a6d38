"""Read ``licences.toml``: the licences of the main components of images."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.solution import Component
from toolkit.versions import older

OWN_LICENCE = "Apache-2.0"
"""The SPDX identifier (standard short name) of toolkit's licence. This licence also applies to the Python
modules of toolkit that an image contains. The file ``LICENSE`` contains the text of the licence.
"""

REFERENCE = "LicenseRef-"
"""SPDX's prefix for the name of a licence that is not on the SPDX list."""


class Licence(Row, frozen=True, kw_only=True):
    """The licence of a component.

    ``spdx`` is an identifier of the SPDX list. ``name`` is the name of a licence that is not on the list.
    Each entry of ``until`` maps a release to the SPDX identifier of the releases before it. The oldest
    release comes first, and the first entry that applies to a version decides.
    """

    spdx: str = ""
    name: str = ""
    until: dict[str, str] = msgspec.field(default_factory=dict)

    def of(self, version: str) -> str:
        """Return the SPDX identifier that applies to ``version`` of the component. Return an empty string if
        the licence is not on the SPDX list.
        """
        return next((spdx for end, spdx in self.until.items() if older(version, end)), self.spdx)

    def term(self, version: str) -> str:
        """Return the licence of ``version`` as a term of an SPDX expression: an identifier, or
        ``LicenseRef-NAME`` for a licence that is not on the SPDX list.
        """
        return self.of(version) or REFERENCE + re.sub(r"[^A-Za-z0-9.]+", "-", self.name)


@cache
def licences() -> dict[Component, Licence]:
    """Return the licence of each component in ``licences.toml``, by component name."""
    return read("licences", dict[Component, Licence])


def terms(versions: Mapping[str, str]) -> dict[Component, str]:
    """Return the licence of each component as a term of an SPDX expression, by component name.

    ``versions`` maps each component of a stack to its version. The result omits components that
    ``licences.toml`` does not list, such as the base image.
    """
    return {name: row.term(versions[name]) for name, row in licences().items() if name in versions}


def expression(other_licences: Iterable[str]) -> str:
    """Return the SPDX expression for toolkit together with components under ``other_licences``."""
    return " AND ".join((OWN_LICENCE, *sorted({*other_licences} - {OWN_LICENCE})))
