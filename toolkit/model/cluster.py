"""Structs for a virtual cluster: its name, its SSH configuration, and the state of its nodes.

A virtual cluster is a Slurm cluster whose nodes are Docker containers on this machine. A virtual cluster for
a class also has one account for each student.
"""

from pathlib import Path
from typing import Literal

import msgspec

DEFAULT_NAME = "demo"
DEFAULT_NODES = 2
USERS = "users"
"""Name of the folder, next to the cluster's SSH files, with a subfolder for each student's account."""

USER = "ada"
"""The user account (not root) in every virtual cluster. In a class, the teacher uses this account."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A running virtual cluster. ``ssh -F SSH_CONFIG login`` opens a shell on the cluster's login node.

    ``users`` is the number of accounts for students, in addition to ``user``.
    """

    name: str
    nodes: int
    ssh_config: Path
    user: str = USER
    users: int = 0

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the host names: ``login``, then ``node1``, ``node2`` and so on."""
        return hosts(self.nodes)

    @property
    def accounts(self) -> tuple[str, ...]:
        """Return the names of the accounts for students."""
        return accounts(self.users)

    def folder_of(self, account: str) -> Path:
        """Return the folder on this machine with the SSH keys of a student's account; the teacher gives the
        folder to the student.
        """
        return self.ssh_config.parent / USERS / account

    def config_of(self, user: str) -> Path:
        """Return the path of the SSH configuration with which ``user`` logs in from this machine."""
        return self.ssh_config if user == self.user else self.folder_of(user) / self.ssh_config.name


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one node. ``container`` is the state that Docker reports. ``slurm`` is the state that
    Slurm reports, or ``None`` if unknown.
    """

    name: str
    container: str
    slurm: str | None = None


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a virtual cluster and its nodes.

    ``state`` is ``partial`` if a container is missing or stopped, or if a node accepts no jobs; otherwise,
    ``state`` is ``up``. ``users`` lists the names of the accounts for students. If another user of this
    machine created the cluster, only that user has the SSH keys, and ``ssh_config`` and ``users`` are empty.
    """

    schema: str = "toolkit.cluster/1"
    name: str
    state: Literal["up", "partial"]
    nodes: tuple[NodeStatus, ...]
    ssh_config: str
    users: tuple[str, ...] = ()


def hosts(nodes: int) -> tuple[str, ...]:
    """Return the host names of a cluster with a login node and ``nodes`` compute nodes."""
    return ("login", *(f"node{i}" for i in range(1, nodes + 1)))


def accounts(count: int) -> tuple[str, ...]:
    """Return the names of ``count`` accounts for students: ``user01``, ``user02`` and so on."""
    return tuple(f"user{number:02}" for number in range(1, count + 1))
