"""Find rank 0 of a job and the number of ranks from the launcher's variables, without calls to MPI or PMI."""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.trainers import rendezvous
from toolkit.trainers.ranks.launcher import started_rank, started_size
from toolkit.trainers.trouble import Trouble

_LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
_ROOT = "TOOLKIT_ROOT"
_LOOPBACK = "127.0.0.1"
_STARTED = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "HOROVOD_RANK")


@dataclass(frozen=True, slots=True)
class RankPlace:
    """The rank and host of this process, and how the process can reach rank 0. ``size`` is the number of
    ranks in the job. ``run`` is a name that identifies this run of the job.

    ``hosts`` lists possible addresses and names of rank 0's node. The most likely entry is first.
    """

    run: str
    rank: int
    size: int
    host: str
    hosts: tuple[str, ...]
    secret: bytes
    """The job's secret, which only the job's ranks can read."""
    listen_address: str = ""
    """The address at which rank 0 listens. If this field is empty, rank 0 listens at all addresses of its
    node.
    """

    @property
    def ports(self) -> list[int]:
        """The ports at which rank 0 may listen, with the most likely port first."""
        return rendezvous.ports_of(self.run)


def find_place(environment: Mapping[str, str], strategy: str) -> RankPlace:
    """Return this process's rank, the number of ranks, and how to reach rank 0. ``strategy`` is the name of
    the strategy for error messages.

    Raises:
        Trouble: if the launcher's variables are missing or contradictory, if the node of rank 0 is unknown,
            or if the job's secret is missing or unsafe.
    """
    if not any(environment.get(name) for name in _STARTED):
        raise Trouble(
            f"--strategy {strategy}: cannot find the other ranks, because no launcher set the rank of this "
            "process; start the trainer with srun or mpirun"
        )
    rank, size = started_rank(environment), started_size(environment)
    if rank >= size:
        raise Trouble(
            f"the launcher's variables contradict each other: rank {rank} (counted from 0), but number of "
            f"ranks {size}; start all ranks with one srun or mpirun command"
        )
    host = environment.get("SLURMD_NODENAME") or socket.gethostname()
    hosts, run = _hosts(environment, strategy, size), _run(environment)
    alone = _is_one_node(environment, size)
    caller = environment.get("SLURM_LAUNCH_NODE_IPADDR", "")
    listens = rendezvous.listening_address(environment.get(_ROOT) or host, caller, alone=alone)
    if not alone and listens and hosts == (_LOOPBACK,):
        hosts = (listens, _LOOPBACK)
    try:
        secret = rendezvous.secret_of(environment, run, first=rank == 0, alone=alone)
    except rendezvous.RendezvousFault as trouble:
        raise Trouble(str(trouble)) from None
    return RankPlace(run, rank, size, host, hosts, secret, listens)


def _is_one_node(environment: Mapping[str, str], size: int) -> bool:
    """Return whether all ranks are on this node."""
    nodes = environment.get("SLURM_JOB_NODELIST" if _by_mpirun(environment) else "SLURM_STEP_NODELIST", "")
    counts = (environment.get(name) for name in _LOCAL_SIZE)
    here = size == 1 or str(size) in counts or nodes == environment.get("SLURMD_NODENAME", "-")
    return here and not environment.get(_ROOT)


def _run(environment: Mapping[str, str]) -> str:
    """Return a name for this run of the job. The name is the same on all ranks, and differs from the names of
    other jobs on the same nodes.
    """
    slurm = ("CLUSTER_NAME", "JOB_ID", "STEP_ID", "RESTART_COUNT")
    names = [*(f"SLURM_{name}" for name in slurm), "PMIX_NAMESPACE"]
    if _by_mpirun(environment):
        # Under mpirun, ranks may have different step IDs, because mpirun's daemons may run in separate steps.
        names.remove("SLURM_STEP_ID")
    return "/".join([str(os.getuid()), *(environment.get(name, "") for name in names)])


def _by_mpirun(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("OMPI_COMM_WORLD_SIZE") or environment.get("MPI_LOCALNRANKS"))


def _hosts(environment: Mapping[str, str], strategy: str, size: int) -> tuple[str, ...]:
    if environment.get(_ROOT):
        return (environment[_ROOT],)
    if str(size) in (environment.get(name) for name in _LOCAL_SIZE) or size == 1:
        return (_LOOPBACK,)
    nodes = environment.get("SLURM_JOB_NODELIST" if _by_mpirun(environment) else "SLURM_STEP_NODELIST", "")
    if not nodes:
        raise Trouble(
            f"--strategy {strategy}: cannot find rank 0, because the ranks are on several nodes, and no "
            f"Slurm variable lists the nodes; set the variable {_ROOT} to the host name of rank 0's node"
        )
    try:
        first = rendezvous.first_node(nodes)
    except rendezvous.RendezvousFault as trouble:
        raise Trouble(str(trouble)) from None
    if first == environment.get("SLURMD_NODENAME"):
        return (_LOOPBACK,)
    caller = environment.get("SLURM_LAUNCH_NODE_IPADDR", "")
    # ``caller`` is the IP address of the node on which srun was called. In a batch script, this node is the
    # job's first node. Ranks need no name service (DNS) to connect to an IP address.
    return (first, *([caller] if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", caller) else []))
