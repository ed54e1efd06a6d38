"""``licences.toml``: what the big parts of a stack are licensed under."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.solution import Component
from toolkit.versions import older


class Licence(Row, frozen=True, kw_only=True):
    """``spdx`` is an identifier of the SPDX list, ``name`` what it is called where that list has none.

    ``until`` holds what applied before, the oldest first: the release that ended it, and its identifier.
    """

    spdx: str = ""
    name: str = ""
    until: dict[str, str] = msgspec.field(default_factory=dict)

    def of(self, version: str) -> str:
        """Return the SPDX identifier that applies to a version; empty text where there is none."""
        return next((spdx for end, spdx in self.until.items() if older(version, end)), self.spdx)


@cache
def licences() -> dict[Component, Licence]:
    """Return the rows of the shipped file, by component."""
    return read("licences", dict[Component, Licence])
