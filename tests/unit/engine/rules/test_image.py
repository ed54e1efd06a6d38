"""The image: its MPI, and whether it is what it says."""

import msgspec

from tests.unit.engine.whole import (
    HOST,
    IMAGE,
    LAUNCHER,
    MPICH,
    absent,
    case,
    host,
    image,
    mpi,
    unread,
    with_,
)

INTEL = msgspec.structs.replace(MPICH, implementation="intelmpi", version="2021.19.0", device=None)
NO_LIBFABRIC = absent(image(mpi=INTEL), "libfabric")
HYDRA = msgspec.structs.replace(LAUNCHER, implementation="mpich", version="4.2.1", pmix=None, leaks=())
OMPI_6 = mpi(version="6.0.0rc2", plugins=False)
OLD_INTEL = with_(NO_LIBFABRIC, mpi=msgspec.structs.replace(INTEL, version="2021.13.1"))
MPICH_501 = image(mpi=msgspec.structs.replace(MPICH, version="5.0.1"))
NO_DEFAULT = msgspec.structs.replace(HOST.slurm, mpi_default=None)
BESIDE = {"binds": ("/opt/ofi/lib:/host/ofi",), "env": {"LD_LIBRARY_PATH": "/host/ofi"}}

FIRES = {
    "image-lacks-mpi": [case(of=absent(IMAGE, "mpi")), case(of=absent(IMAGE, "mpi"), nodes=1)],
    "image-mpi-not-measured": [case(of=mpi(implementation="cray", interfaces=("pmix",)))],
    "libfabric-missing": [
        case(of=NO_LIBFABRIC, mode="srun-pmi2"),
        case(host(mpis=(HYDRA,)), NO_LIBFABRIC, "mpirun-host"),
        case(absent(HOST, "libfabric"), NO_LIBFABRIC, "srun-pmi2"),
        case(of=OLD_INTEL, mode="srun-none"),
        case(of=OLD_INTEL, mode="srun-pmi2"),
        case(of=OLD_INTEL, mode="mpirun-container", nodes=1),
        case(host(mpis=(HYDRA,), slurm=NO_DEFAULT), OLD_INTEL, "mpirun-host"),
    ],
    "mpi-release-defect": [case(of=OMPI_6), case(of=MPICH_501, mode="srun-pmi2")],
    "stack-disagrees": [case(of=image(disagreements=("stack.json says pmix 5.0.7, found was 4.2.9",)))],
}
QUIET = {
    "image-lacks-mpi": [case()],
    "image-mpi-not-measured": [case(), case(of=image(mpi=MPICH))],
    "libfabric-missing": [
        case(mode="srun-pmi2"),
        case(of=NO_LIBFABRIC, mode="srun-pmi2", nodes=1),
        case(of=NO_LIBFABRIC, mode="mpirun-host"),
        case(host(mpis=()), NO_LIBFABRIC, "mpirun-host"),
        case(host(libfabric="/opt/ofi/lib/libfabric.so.1"), NO_LIBFABRIC, "srun-pmi2", **BESIDE),
    ],
    "mpi-release-defect": [
        case(),
        case(of=OMPI_6, env={"OMPI_MCA_btl_tcp_if_include": "eth0"}),
        case(of=MPICH_501, mode="srun-pmi2", env={"UCX_TLS": "tcp,self"}),
        case(of=MPICH_501, mode="srun-none"),
        case(of=absent(IMAGE, "mpi")),
    ],
    "stack-disagrees": [case(), case(of=absent(IMAGE, "stack"))],
}
UNDECIDED = {
    "image-lacks-mpi": [case(of=unread(IMAGE, "mpi"))],
    "libfabric-missing": [case(of=unread(image(mpi=INTEL), "libfabric"), mode="srun-pmi2")],
}
OUTCOMES = {
    "image-lacks-mpi": "loader-failure",
    "image-mpi-not-measured": "unknown",
    "libfabric-missing": "init-failure",
    "mpi-release-defect": "comm-failure",
}


def test_an_old_intel_mpi_without_libfabric_crashes_before_it_can_be_alone():
    from toolkit.engine.predict import foresee

    outcomes = ("crash", "init-failure", "init-failure")
    for of, outcome in zip(FIRES["libfabric-missing"][3:6], outcomes, strict=True):
        assert foresee(of.host, of.image, of.request, of.plan).outcome == outcome


def test_one_rank_alone_is_warned_and_runs():
    from toolkit.engine.predict import foresee

    of = FIRES["image-lacks-mpi"][1]
    assert foresee(of.host, of.image, of.request, of.plan).outcome == "ok"
