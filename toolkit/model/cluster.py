"""A virtual cluster: its name, how to reach it, and the state of its nodes."""

from pathlib import Path
from typing import Literal

import msgspec

DEFAULT_NAME = "demo"
DEFAULT_NODES = 2
USERS = "users"
"""The folder with a folder for each account, beside the SSH files of a cluster."""

USER = "ada"
"""The ordinary user of every virtual cluster, in a class the teacher; named after the first programmer."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A running cluster; ``ssh -F SSH_CONFIG login`` opens a shell on its login node.

    ``users`` is the number of accounts for a class, beside ``user``.
    """

    name: str
    nodes: int
    ssh_config: Path
    user: str = USER
    users: int = 0

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the host names: the login node, then the compute nodes in order."""
        return hosts(self.nodes)

    @property
    def accounts(self) -> tuple[str, ...]:
        """Return the names of the accounts for a class."""
        return accounts(self.users)

    def folder_of(self, account: str) -> Path:
        """Return the folder on this machine with the keys of an account, which is given to its user."""
        return self.ssh_config.parent / USERS / account

    def config_of(self, user: str) -> Path:
        """Return the SSH configuration for logging in as ``user`` from this machine."""
        return self.ssh_config if user == self.user else self.folder_of(user) / self.ssh_config.name


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One node: ``container`` is Docker's state, ``slurm`` is Slurm's, ``None`` if unknown."""

    name: str
    container: str
    slurm: str | None = None


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``partial`` says that a container is missing or stopped, or that a node accepts no jobs.

    ``ssh_config`` is empty if the keys are not here because another user created the cluster. So are
    ``users``, the accounts for a class.
    """

    schema: str = "toolkit.cluster/1"
    name: str
    state: Literal["up", "partial"]
    nodes: tuple[NodeStatus, ...]
    ssh_config: str
    users: tuple[str, ...] = ()


def hosts(nodes: int) -> tuple[str, ...]:
    """Return the host names of a cluster with ``nodes`` compute nodes."""
    return ("login", *(f"node{i}" for i in range(1, nodes + 1)))


def accounts(count: int) -> tuple[str, ...]:
    """Return the names of ``count`` accounts for a class."""
    return tuple(f"user{number:02}" for number in range(1, count + 1))
