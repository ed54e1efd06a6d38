"""The results of the checks of an image file."""

from typing import Literal

import msgspec

Outcome = Literal["ok", "failed", "not-checked"]
CheckName = Literal["digest", "signature", "lock", "files", "packages", "wheels", "versions"]
"""The names of the checks, in the order in which toolkit runs the checks."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. ``told`` is a one-line summary; ``detail`` lists the problems that the check
    found.
    """

    name: CheckName
    outcome: Outcome
    told: str
    detail: tuple[str, ...] = ()


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all checks of one SIF.

    ``signers`` are the fingerprints of valid signatures. ``unknown_keys`` are the fingerprints of keys that
    signed the file but that this machine does not have. If the signature check found a problem other than a
    missing key, ``unknown_keys`` is empty.
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
