"""The checks of an image file, and the results."""

from typing import Literal

import msgspec

Outcome = Literal["ok", "failed", "not-checked"]
CheckName = Literal["digest", "signature", "lock", "files", "packages", "wheels", "versions"]
"""The checks in the order in which toolkit makes them: the file, the signature, the contents."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison. ``told`` is a summary in one line; ``detail`` has every difference."""

    name: CheckName
    outcome: Outcome
    told: str
    detail: tuple[str, ...] = ()


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all checks of one SIF.

    ``signers`` are the fingerprints of valid signatures. ``unknown_keys`` are keys that this machine lacks to
    check a signature; it is empty if another check failed.
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
