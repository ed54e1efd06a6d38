"""What was checked of an image file, and what came of it."""

from typing import Literal

import msgspec

Outcome = Literal["ok", "failed", "not-checked"]
CheckName = Literal["digest", "signature", "lock", "files", "packages", "wheels", "versions"]
"""In the order in which they are made: the file, whose it is, then what is inside."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was compared; ``told`` is a line for a person, ``detail`` every difference."""

    name: CheckName
    outcome: Outcome
    told: str
    detail: tuple[str, ...] = ()


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one SIF.

    ``signers`` are the fingerprints whose signatures hold, ``unknown_keys`` those of keys that are not there
    to check a signature with, where nothing else speaks against the file.
    """

    schema: str = "toolkit.verified/1"
    path: str
    sha256: str
    signers: tuple[str, ...] = ()
    unknown_keys: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def ok(self) -> bool:
        return all(check.outcome != "failed" for check in self.checks)
