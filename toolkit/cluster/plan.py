"""Plan a virtual cluster: its names, sizes and addresses. This module creates no containers."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.cluster.flavour import default_flavour, flavours
from toolkit.errors import BadInput
from toolkit.model.cluster import hosts

if TYPE_CHECKING:
    from toolkit.run.docker.nodes import Machine

LABEL = "toolkit.cluster"
"""The label of every container, network and volume of a cluster. The value of the label is the cluster's
name.
"""

COUNT = "toolkit.nodes"
"""A label of every container. The value of the label is the number of compute nodes."""

FLAVOUR = "toolkit.flavour"
"""A label of every container. The value of the label is the cluster's flavour, such as ``pmix``."""

LISTEN = "toolkit.listen"
"""If the user chose an address for the login node (``--listen``), every container has this label. The value
of the label is the chosen ``ADDRESS:PORT``.
"""

MOST_NODES = 16
MOST_USERS = 99
SSH_PORT = 22
LOCAL_ADDRESS = "127.0.0.1"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_LOGIN_SHARE = 0.15
_COMPUTE_SHARE = 0.75
_LEAST_MEMORY = 512 << 20
_DAEMONS = 256 << 20
"""The memory of each node in bytes that toolkit keeps for daemons, and does not offer to Slurm's jobs."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The plan of a cluster on a machine with ``cpus`` cores and ``memory`` bytes of memory.

    ``flavour`` is the name of the cluster's flavour. ``listen`` is the ``ADDRESS:PORT`` of this machine at
    which users reach the login node. If ``listen`` is empty, Docker chooses a port that only this machine can
    reach. If ``make`` created the cluster, ``owner`` is a Docker label that names the clone of toolkit's
    repository in which ``make`` ran.
    """

    name: str
    nodes: int
    cpus: int
    memory: int
    flavour: str = field(default_factory=default_flavour)
    listen: str = ""
    owner: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address on this machine at which users reach the login node."""
        return self.listen.rpartition(":")[0] or LOCAL_ADDRESS

    @property
    def hosts(self) -> tuple[str, ...]:
        return hosts(self.nodes)

    @property
    def network(self) -> str:
        return f"toolkit-{self.name}"

    @property
    def volumes(self) -> dict[str, str]:
        """The volumes that all nodes share, with their mount points."""
        return {f"toolkit-{self.name}-home": "/home", f"toolkit-{self.name}-work": "/work"}

    @property
    def labels(self) -> dict[str, str]:
        labels = {LABEL: self.name, COUNT: str(self.nodes), FLAVOUR: self.flavour, **self.owner}
        return {**labels, LISTEN: self.listen} if self.listen else labels

    def container(self, host: str) -> str:
        return container(self.name, host)

    def memory_of(self, host: str) -> int:
        """Return the memory limit of a node in bytes, at least 512 MiB. If the limits of all nodes are
        above this minimum, the limits add up to 90 % of the machine's memory.
        """
        share = _LOGIN_SHARE if host == "login" else _COMPUTE_SHARE / self.nodes
        return max(int(self.memory * share), _LEAST_MEMORY)

    def machine(self, host: str, image: str) -> "Machine":
        """Return the specification of a node's container."""
        from toolkit.run.docker.nodes import Machine  # slow import, which a launch on a cluster does not need

        login = host == "login"
        memory = self.memory_of(host)
        return Machine(
            name=self.container(host),
            image=image,
            address=host,
            words=("login" if login else "compute",),
            labels=self.labels,
            network=self.network,
            volumes=self.volumes,
            memory=memory,
            shared_memory=memory // 2,  # Linux gives /dev/shm half of the memory by default
            ports=(SSH_PORT,) if login else (),
            published=(self.address, self.listen.rpartition(":")[2]),
        )

    def slurm(self) -> dict[str, object]:
        """Return the template values of ``slurm.conf.j2``."""
        return {
            "name": self.name,
            "mpi_default": flavours()[self.flavour].mpi_default,
            "cpus": self.cpus,
            "memory_mb": (self.memory_of("node1") - _DAEMONS) >> 20,
            "node_list": f"node[1-{self.nodes}]" if self.nodes > 1 else "node1",
        }

    def cgroup(self) -> dict[str, object]:
        """Return the template values of ``cgroup.conf.j2``."""
        return {"cgroup_plugin": flavours()[self.flavour].cgroup_plugin}


def container(name: str, host: str) -> str:
    """Return the name of the container for node ``host`` of the cluster ``name``."""
    return f"toolkit-{name}-{host}"


def label(name: str) -> str:
    """Return the label filter with which Docker finds all objects of the cluster ``name``."""
    return f"{LABEL}={name}"


def check_name(name: str) -> str:
    """Return ``name`` if it is a valid name for a cluster.

    Raises:
        BadInput: if the name cannot be part of a container name or host name.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} cannot be the name of a cluster",
            fix="use at most 31 lower-case letters, digits and hyphens, and begin with a letter",
        )
    return name


def check_nodes(nodes: int) -> int:
    """Return ``nodes`` if ``nodes`` is a valid number of compute nodes.

    Raises:
        BadInput: if the number is less than 1 or greater than 16.
    """
    if not 1 <= nodes <= MOST_NODES:
        raise BadInput(f"a virtual cluster has 1 to {MOST_NODES} compute nodes, not {nodes}")
    return nodes


def check_users(users: int) -> int:
    """Return ``users`` if ``users`` is a valid number of learners' accounts.

    Raises:
        BadInput: if the number is less than 0 or greater than 99.
    """
    if not 0 <= users <= MOST_USERS:
        raise BadInput(f"a virtual cluster has 0 to {MOST_USERS} users, not {users}")
    return users


def check_listen(listen: str) -> str:
    """Return ``listen`` if it is an ``ADDRESS:PORT`` at which a login node can listen. This function reads
    only the text, and does not check whether the address belongs to this machine.

    Raises:
        BadInput: if the address is not an IPv4 address or is 0.0.0.0, or the port is not from 1024 to 65535.
    """
    address, _, port = listen.rpartition(":")
    try:
        known = ipaddress.IPv4Address(address)
    except ValueError:
        known = None
    if known is None or known.is_unspecified or not (port.isdecimal() and 1024 <= int(port) < 1 << 16):
        raise BadInput(
            f"--listen {listen}: expected an IPv4 address of this machine and a port from 1024 to 65535",
            fix="give the address at which the users' machines reach this machine, as in "
            "`--listen 192.168.1.10:2222`",
        )
    return f"{known}:{int(port)}"


def is_reachable(listen: str) -> bool:
    """Return whether other machines can reach the address in ``listen``; False for loopback."""
    return not ipaddress.IPv4Address(listen.rpartition(":")[0]).is_loopback
