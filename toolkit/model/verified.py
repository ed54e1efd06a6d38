"""The checks of an image file, and their results."""

from typing import Literal

import msgspec

Outcome = Literal["ok", "failed", "not-checked"]
CheckName = Literal["digest", "signature", "lock", "files", "packages", "wheels", "versions"]
"""The names of the checks, in the order in which toolkit runs the checks: file, signature, contents."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. ``told`` is a one-line summary; ``detail`` lists differences that the check
    found.
    """

    name: CheckName
    outcome: Outcome
    told: str
    detail: tuple[str, ...] = ()


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all checks of one SIF.

    ``signers`` are the fingerprints of valid signatures. ``unknown_keys`` are the fingerprints of keys that
    signed the file but that this machine does not have. ``unknown_keys`` is empty if the signature check
    found any other problem.
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
