"""A secret text, such as a token or a password, that toolkit uses but never prints."""

from collections.abc import Mapping
from typing import Self

HIDDEN_TEXT = "[hidden]"
"""The text that toolkit prints instead of a secret."""


class Hidden(str):
    """A secret text that prints as ``[hidden]`` and that msgspec's JSON encoder refuses.

    Comparisons use the secret text. ``str``, ``repr``, f-strings and ``%`` return :data:`HIDDEN_TEXT`.
    msgspec refuses to encode a subclass of ``str``, so toolkit cannot write a secret into a job record by
    mistake.
    """

    __slots__ = ()

    def __new__(cls, value: str = "") -> Self:
        # str(value) would return HIDDEN_TEXT for a Hidden value, so reveal() returns the secret text.
        return super().__new__(cls, value.reveal() if isinstance(value, Hidden) else value)

    def __str__(self) -> str:
        return HIDDEN_TEXT

    def __repr__(self) -> str:
        return HIDDEN_TEXT

    def __format__(self, _: str) -> str:
        return HIDDEN_TEXT

    def reveal(self) -> str:
        """Return the secret text, so that the caller can write it to a file that only the user can read."""
        return str.__str__(self)


NO_SECRETS: Mapping[str, Hidden] = {}


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose values are not secret; a job record may contain these variables."""
    return {name: value for name, value in variables.items() if not isinstance(value, Hidden)}


def secrets_among(variables: Mapping[str, str]) -> dict[str, Hidden]:
    """Return the variables whose values are secret."""
    return {name: value for name, value in variables.items() if isinstance(value, Hidden)}
