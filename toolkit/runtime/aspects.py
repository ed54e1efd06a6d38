"""The namespaces and folders that a container may share with its node, and the form of the probe's output."""

from typing import Literal, Protocol

Aspect = Literal[
    "environment", "tmp", "shm", "processes", "users", "network", "home", "identity", "descriptors"
]  # fmt: skip
"""A namespace or folder that a container may share with its node.

``users`` is the user namespace of the node's other ranks. ``identity`` is the user ID outside the container.
``descriptors`` are open files, such as the socket for PMI.
"""


class Answer(Protocol):
    """One section of the probe's output (:class:`toolkit.probe.evidence.Section`)."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of this section of the probe's output."""
        ...

    def values(self, word: str) -> tuple[str, ...]:
        """Return the rest of each line that starts with ``word``."""
        ...
