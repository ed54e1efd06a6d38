"""Test the rules about memory, processes and namespaces that ranks of one node share."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, MPICH, absent, case, host, image, mpi, runtime, unread, with_
from tests.unit.tables import every_row
from toolkit.engine.judge import judge
from toolkit.engine.planning.proposal import propose
from toolkit.engine.predict import predict
from toolkit.engine.registry import RULES
from toolkit.model.prediction import Request

DEBIAN = with_(image(mpi=msgspec.structs.replace(MPICH, version="4.0.2", own_shm=False)), ucx="1.13.1")
OPEN_MPI_4 = mpi(version="4.1.4")
MPICH_5 = image(mpi=msgspec.structs.replace(MPICH, version="5.0.2"))
CH3 = image(mpi=msgspec.structs.replace(MPICH, version="3.4.1", device="ch3:nemesis", own_shm=None))
OPEN_MPI_5 = with_(mpi(version="5.0.10"), ucx="1.18.1")
OLD_UCX = mpi(version="5.0.3")
without_ucx = msgspec.structs.replace(OLD_UCX.mpi, components={"pml": ("ob1",), "btl": ("self", "tcp")})
NEWER_UCX = with_(DEBIAN, ucx="1.18.0")
SMALL = host(shm=65536)
TWO = {"mode": "srun-pmi2", "ranks_per_node": 2}
MINIMAL = runtime(setuid=True, settings={"mount dev": "minimal"})
"""A host whose containers have their own /dev, including their own /dev/shm."""
NO_DEV = runtime(setuid=True, settings={"mount dev": "no"})
TORCH = {"mode": "torch", "program": "torch", "wrapper": ("sh", "toolkit-ranks.sh")}
EFA = host(locked_memory=64 << 20, fabrics=("efa",), infiniband=("rdmap0s6",))
SOCK = image(mpi=msgspec.structs.replace(MPICH, version="4.0.2", device="ch3:sock"))
INTEL = image(mpi=msgspec.structs.replace(MPICH, implementation="intelmpi", version="2021.16.1"))


def unknown(**changes):
    return with_(DEBIAN, mpi=msgspec.structs.replace(DEBIAN.mpi, **changes))


FIRES = {
    "namespaces-split-a-node": [
        case(of=DEBIAN, **TWO),
        case(of=DEBIAN, nodes=1, **TWO),
        case(of=unknown(own_shm=None), **TWO),
        case(of=MPICH_5, **TWO),
        case(of=mpi(version="2.1.6", components={"pml": ("ob1",)}), ranks_per_node=2),
        case(of=OLD_UCX, ranks_per_node=2),
        case(host(infiniband=(), fabrics=()), OLD_UCX, ranks_per_node=2, given={"OMPI_MCA_pml": "ucx"}),
        case(of=OLD_UCX, ranks_per_node=2, given={"UCX_TLS": "rc,sm,self"}),
    ],
    "large-messages-hang": [case(of=OPEN_MPI_4, ranks_per_node=2)],
    "rdma-memory-refused": [
        case(host(locked_memory=8 << 20), **TORCH),
        case(EFA, image(nccl_ofi="/opt/lib/libnccl-net.so"), **TORCH),
    ],
    "ranks-in-namespaces-of-their-own": [
        case(ranks_per_node=4, container=("--ipc", "--pid")),
        case(ranks_per_node=2, container=("--ipc", "--pid")),
    ],
    "mpi-shared-memory-small": [
        case(SMALL, CH3, **TWO),
        case(host(shm=2**18), CH3, **TWO),
        case(host(shm=2**20), MPICH_5, **TWO),
    ],
    "shared-memory-apart": [
        case(MINIMAL, MPICH_5, **TWO),
        case(runtime(setuid=True), CH3, container=("--contain",), **TWO),
        case(MINIMAL, INTEL, **TWO),
        case(
            runtime(setuid=True, version="0.9", settings=MINIMAL.runtime.settings),
            CH3,
            binds=("/dev",),
            **TWO,
        ),
    ],
}
QUIET = {
    "rdma-memory-refused": [
        case(**TORCH),
        case(absent(host(locked_memory=8 << 20), "gpu_driver", "gpus"), **TORCH),
        case(host(locked_memory=8 << 20)),
        case(host(locked_memory=8 << 20), nodes=1, **TORCH),
        case(host(locked_memory=2**32), **TORCH),
        case(host(locked_memory=8 << 20), **TORCH, env={"NCCL_IB_DISABLE": "1"}),
        case(EFA, absent(IMAGE, "nccl_ofi"), **TORCH),
        case(absent(HOST, "locked_memory"), **TORCH),
    ],
    "shared-memory-apart": [
        case(of=MPICH_5, **TWO),
        case(absent(HOST, "runtime"), MPICH_5, **TWO),
        case(MINIMAL, MPICH_5, mode="srun-pmi2"),
        case(MINIMAL, MPICH_5, binds=("/dev",), **TWO),
        case(runtime(settings={"mount dev": "minimal"}), MPICH_5, container=("--sharens",), **TWO),
        case(NO_DEV, MPICH_5, **TWO),
        case(MINIMAL, SOCK, **TWO),
        case(MINIMAL, ranks_per_node=2),
        case(unread(HOST, "runtime.settings"), MPICH_5, binds=("/dev",), **TWO),
    ],
    "namespaces-split-a-node": [
        case(of=OPEN_MPI_5, ranks_per_node=2),
        case(of=mpi(version="3.1.3", components={"pml": ("ob1",)}), ranks_per_node=2),
        case(of=mpi(version="4.0.1", components={"pml": ("ob1",)}), ranks_per_node=2),
        case(of=OLD_UCX, ranks_per_node=2, container=("--sharens",)),
        case(of=OLD_UCX, ranks_per_node=2, env={"UCX_TLS": "^posix,cma"}),
        case(of=OLD_UCX, ranks_per_node=2, given={"OMPI_MCA_pml": "ob1"}),
        case(of=OLD_UCX, ranks_per_node=2, given={"UCX_TLS": "rc,self"}),
        case(host(infiniband=(), fabrics=()), OLD_UCX, ranks_per_node=2),
        case(of=with_(OLD_UCX, mpi=without_ucx), ranks_per_node=2),
        case(of=DEBIAN, mode="srun-pmi2"),
        case(of=DEBIAN, container=("--sharens",), **TWO),
        case(runtime(setuid=True), DEBIAN, **TWO),
        case(of=NEWER_UCX, **TWO),
        case(of=DEBIAN, env={"UCX_TLS": "tcp,self"}, **TWO),
        case(host(ptrace_scope=1), MPICH_5, **TWO),
        case(of=CH3, **TWO),
        case(of=unknown(own_shm=None, device="ch4:ofi"), **TWO),
        case(absent(HOST, "runtime"), DEBIAN, **TWO),
        case(runtime(setuid=None), OPEN_MPI_5, **TWO),
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
    "rdma-memory-refused": [
        case(unread(HOST, "locked_memory"), **TORCH),
        case(host(locked_memory=8 << 20, compute_nodes=None), **TORCH),
    ],
    "large-messages-hang": [case(runtime(setuid=None), OPEN_MPI_4, ranks_per_node=2)],
    "namespaces-split-a-node": [
        case(of=unknown(device=None), **TWO),
        case(of=unknown(own_shm=None, device="ch4:ucx,ofi"), **TWO),
        case(of=with_(OLD_UCX, mpi=msgspec.structs.replace(OLD_UCX.mpi, components={})), ranks_per_node=2),
        case(unread(HOST, "infiniband"), OLD_UCX, ranks_per_node=2),
        case(runtime(setuid=None), DEBIAN, **TWO),
    ],
    "shared-memory-apart": [
        case(MINIMAL, unknown(device=None), **TWO),
        case(unread(HOST, "runtime.settings"), MPICH_5, **TWO),
    ],
    "mpi-shared-memory-small": [
        case(SMALL, unknown(device=None), **TWO),
        case(unread(HOST, "shm"), CH3, **TWO),
    ],
}
OUTCOMES = {
    "rdma-memory-refused": "comm-failure",
    "ranks-in-namespaces-of-their-own": "crash",
    "namespaces-split-a-node": "init-failure",
    "mpi-shared-memory-small": "crash",
    "shared-memory-apart": "hang",
}


@every_row(
    ("version", "outcome"),
    [
        ("3.1.4", "unknown"),
        ("3.4.3", "init-failure"),
        ("4.0.3", "init-failure"),
        ("4.1.3", "crash"),
        ("4.3.2", "init-failure"),
        ("5.0.1", "hang"),
    ],
)
def test_how_an_mpich_ends_whose_ranks_have_a_dev_shm_each_turns_on_its_release(version, outcome):
    of = with_(MPICH_5, mpi=msgspec.structs.replace(MPICH_5.mpi, version=version))
    asked = case(MINIMAL, of, env={"MPIR_CVAR_CH4_CMA_ENABLE": "0"}, nodes=1, **TWO)
    assert judge(asked, RULES)[0].outcome == outcome


def test_where_the_site_leaves_a_minimal_dev_the_plan_brings_the_whole_one_in():
    plan = propose(MINIMAL, MPICH_5, Request(nodes=1, ranks_per_node=2), "srun-pmi2")
    assert plan.binds == ("/dev",)
    assert predict(MINIMAL, MPICH_5, Request(nodes=1, ranks_per_node=2)).of("srun-pmi2").outcome == "ok"
    for other in (
        HOST,
        NO_DEV,
        runtime(name="singularity", version="3.5.3", settings={"mount dev": "minimal"}),
    ):
        assert propose(other, MPICH_5, Request(nodes=1, ranks_per_node=2), "srun-pmi2").binds == ()


def test_two_ranks_that_are_numbered_apart_mostly_work_and_more_of_them_do_not():
    shapes = {(1, 2): "ok", (2, 2): "ok", (1, 3): "crash", (4, 2): "crash"}
    for (nodes, ranks), outcome in shapes.items():
        of = case(of=OPEN_MPI_5, nodes=nodes, ranks_per_node=ranks, container=("--pid",))
        prediction, findings = judge(of, RULES)
        assert (nodes, ranks, prediction.outcome) == (nodes, ranks, outcome)
        found = next(f for f in findings if f.id == "ranks-in-namespaces-of-their-own")
        assert found.severity == ("warning" if outcome == "ok" else "error")
        assert "14 of 55" in found.title


@every_row(
    ("release", "container", "env"),
    [
        ("1.4.5", ("--nv", "--sharens"), {}),
        ("1.2.5", ("--nv",), {"UCX_TLS": "^posix,cma"}),
    ],
)
def test_an_old_ucx_on_infiniband_gets_one_namespace_or_does_without_shared_memory(release, container, env):
    there = runtime(version=release)
    plan = propose(there, OLD_UCX, Request(ranks_per_node=2), "srun-pmix")
    assert plan.container == container
    assert env.items() <= plan.env.items()
    assert predict(there, OLD_UCX, Request(ranks_per_node=2)).of("srun-pmix").outcome == "ok"
    # The plan does not change UCX settings of the image.
    of = with_(OLD_UCX, environment={"UCX_TLS": "rc,self"})
    assert "UCX_TLS" not in propose(there, of, Request(ranks_per_node=2), "srun-pmix").env
