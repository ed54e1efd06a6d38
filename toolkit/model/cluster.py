"""A virtual cluster: what it is called, how to reach it, and how its nodes are."""

from pathlib import Path
from typing import Literal

import msgspec

DEFAULT_NAME = "virtual"
DEFAULT_NODES = 2
USER = "ada"
"""The ordinary user of every virtual cluster; after the first programmer."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that is up; ``ssh -F SSH_CONFIG login`` opens a shell on its login node."""

    name: str
    nodes: int
    ssh_config: Path
    user: str = USER

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the host names: the login node, then the compute nodes in order."""
        return hosts(self.nodes)


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One node: ``container`` is Docker's word, ``slurm`` is Slurm's, ``None`` where it cannot tell."""

    name: str
    container: str
    slurm: str | None = None


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``partial`` says that a container is missing or stopped, or that a node takes no jobs.

    ``ssh_config`` is empty where the keys are not here: another user made the cluster.
    """

    schema: str = "toolkit.cluster/1"
    name: str
    state: Literal["up", "partial"]
    nodes: tuple[NodeStatus, ...]
    ssh_config: str


def hosts(nodes: int) -> tuple[str, ...]:
    """Return the host names of a cluster with that many compute nodes."""
    return ("login", *(f"node{i}" for i in range(1, nodes + 1)))
