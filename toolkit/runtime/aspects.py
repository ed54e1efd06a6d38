"""Define two types: a part of a node that a container may share with the node, and a section of the output of
``toolkit probe``.
"""

from typing import Literal, Protocol

Aspect = Literal[
    "environment", "tmp", "shm", "processes", "users", "network", "home", "identity", "descriptors"
]  # fmt: skip
"""A part of the node that a container may share with the node, such as a namespace or a folder.

A container shares ``users`` if all ranks on the node are in the same user namespace. A container shares
``identity`` if processes have the same user ID in the container as on the node. ``descriptors`` are open file
descriptors, such as the socket for PMI.
"""


class Answer(Protocol):
    """One section of the probe's output (:class:`toolkit.probe.evidence.Section`)."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of this section of the probe's output."""
        ...

    def values(self, word: str) -> tuple[str, ...]:
        """Return the text after ``word`` from each line of this section that starts with ``word``."""
        ...
