"""What ranks of one node share: memory, processes, namespaces."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, MPICH, absent, case, host, image, mpi, runtime, unread, with_

DEBIAN = with_(image(mpi=msgspec.structs.replace(MPICH, version="4.0.2", own_shm=False)), ucx="1.13.1")
OPEN_MPI_4 = mpi(version="4.1.4")
MPICH_5 = image(mpi=msgspec.structs.replace(MPICH, version="5.0.2"))
CH3 = image(mpi=msgspec.structs.replace(MPICH, version="3.4.1", device="ch3:nemesis", own_shm=None))
NEWER_UCX = with_(DEBIAN, ucx="1.18.0")
SMALL = host(shm=65536)
TWO = {"mode": "srun-pmi2", "ranks_per_node": 2}


def unknown(**changes):
    """Return Debian's MPICH with some facts of it missing."""
    return with_(DEBIAN, mpi=msgspec.structs.replace(DEBIAN.mpi, **changes))


FIRES = {
    "namespaces-split-a-node": [
        case(of=DEBIAN, **TWO),
        case(of=DEBIAN, nodes=1, **TWO),
        case(of=MPICH_5, **TWO),
    ],
    "large-messages-hang": [case(of=OPEN_MPI_4, ranks_per_node=2)],
    "ranks-in-namespaces-of-their-own": [case(ranks_per_node=2, container=("--ipc", "--pid"))],
    "mpi-shared-memory-small": [
        case(SMALL, CH3, **TWO),
        case(host(shm=2**18), CH3, **TWO),
        case(host(shm=2**20), MPICH_5, **TWO),
    ],
}
QUIET = {
    "namespaces-split-a-node": [
        case(ranks_per_node=2),
        case(of=DEBIAN, mode="srun-pmi2"),
        case(of=DEBIAN, container=("--sharens",), **TWO),
        case(runtime(setuid=True), DEBIAN, **TWO),
        case(of=NEWER_UCX, **TWO),
        case(of=DEBIAN, env={"UCX_TLS": "tcp,self"}, **TWO),
        case(host(ptrace_scope=1), MPICH_5, **TWO),
        case(of=CH3, **TWO),
        case(absent(HOST, "runtime"), DEBIAN, **TWO),
        case(runtime(setuid=None), IMAGE, **TWO),
    ],
    "large-messages-hang": [
        case(of=OPEN_MPI_4),
        case(of=OPEN_MPI_4, ranks_per_node=2, container=("--sharens",)),
        case(of=OPEN_MPI_4, ranks_per_node=2, env={"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}),
        case(runtime(setuid=True), OPEN_MPI_4, ranks_per_node=2),
        case(of=mpi(version="5.0.10"), ranks_per_node=2),
    ],
    "ranks-in-namespaces-of-their-own": [
        case(),
        case(container=("--ipc", "--pid")),
        case(ranks_per_node=2, container=("--ipc",)),
        case(ranks_per_node=2, container=("--sharens", "--pid")),
        case(of=DEBIAN, container=("--ipc", "--pid"), **TWO),
    ],
    "mpi-shared-memory-small": [
        case(of=CH3, **TWO),
        case(SMALL, ranks_per_node=2),
        case(SMALL, CH3, "srun-pmi2"),
        case(SMALL, CH3, container=("--contain",), **TWO),
        case(absent(HOST, "shm"), CH3, **TWO),
        case(SMALL, NEWER_UCX, **TWO),
    ],
}
UNDECIDED = {
    "large-messages-hang": [case(runtime(setuid=None), OPEN_MPI_4, ranks_per_node=2)],
    "namespaces-split-a-node": [
        case(of=unknown(device=None), **TWO),
        case(of=unknown(own_shm=None), **TWO),
        case(runtime(setuid=None), DEBIAN, **TWO),
    ],
    "mpi-shared-memory-small": [
        case(SMALL, unknown(device=None), **TWO),
        case(unread(HOST, "shm"), CH3, **TWO),
    ],
}
OUTCOMES = {
    "namespaces-split-a-node": "init-failure",
    "ranks-in-namespaces-of-their-own": "crash",
    "mpi-shared-memory-small": "crash",
}
