"""Namespaces and folders that a container shares with its node, and how a machine's answer is read."""

from typing import Literal, Protocol

Aspect = Literal[
    "environment", "tmp", "shm", "processes", "users", "network", "home", "identity", "descriptors"
]  # fmt: skip
"""``users``: the user namespace of the other ranks on the node. ``identity``: the user number outside.
``descriptors``: open files, such as the socket for PMI."""


class Answer(Protocol):
    """One section of a probe's answer (:class:`toolkit.probe.evidence.Section`)."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The raw lines."""
        ...

    def values(self, word: str) -> tuple[str, ...]:
        """Return the rest of each line that begins with ``word``."""
        ...
