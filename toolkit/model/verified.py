"""The checks of an image file, and their results."""

from typing import Literal

import msgspec

Outcome = Literal["ok", "failed", "not-checked"]
CheckName = Literal["digest", "signature", "lock", "files", "packages", "wheels", "versions"]
"""In the order in which they are made: the file, its signer, its contents."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison; ``told`` is a summary line, ``detail`` every difference."""

    name: CheckName
    outcome: Outcome
    told: str
    detail: tuple[str, ...] = ()


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one SIF.

    ``signers`` are the fingerprints of valid signatures, ``unknown_keys`` the keys that are missing to check
    a signature, if nothing else contradicts the file.
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
