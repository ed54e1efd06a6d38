"""Define two types: a part of a node that a container may share, and a section of the probe's output."""

from typing import Literal, Protocol

Aspect = Literal[
    "environment", "tmp", "shm", "processes", "users", "network", "home", "identity", "descriptors"
]  # fmt: skip
"""A part of the node that a container may share, such as a namespace or a folder.

``users`` is the user namespace of the other ranks on the node. ``identity`` is the user ID outside the
container. ``descriptors`` are open file descriptors, such as the socket for PMI.
"""


class Answer(Protocol):
    """One section of the probe's output (:class:`toolkit.probe.evidence.Section`)."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of this section of the probe's output."""
        ...

    def values(self, word: str) -> tuple[str, ...]:
        """Return the rest of each line that starts with ``word``, in this section of the probe's output."""
        ...
