"""Test the rules about container options that hide something from MPI."""

import msgspec

from tests.unit.engine.whole import (
    HOST,
    IMAGE,
    LAUNCHER,
    MPICH,
    SLURM,
    absent,
    case,
    host,
    image,
    mpi,
    runtime,
    unread,
    with_,
)

PMIX_5 = with_(IMAGE, pmix="5.0.7", pmix_components={"gds": ("hash", "shmem2")})
PMIX_7 = with_(IMAGE, pmix="7.0.0~rc1-2+b1", pmix_components={"gds": ("hash", "shmem3")})
SERVER_7 = host(pmix="7.0.0")
PRIVATE = host(slurm=msgspec.structs.replace(SLURM, settings={"JobContainerType": "job_container/tmpfs"}))
# Sources: `scontrol show config` of Slurm 25.11.4, and slurm.schedmd.com/namespace.html.
SPACES = host(slurm=msgspec.structs.replace(SLURM, settings={"NamespaceType": "namespace/linux"}))
NO_SPACES = host(slurm=msgspec.structs.replace(SLURM, settings={"NamespaceType": "(null)"}))
NO_TMP = runtime(settings={"mount tmp": "no"})
NO_BINDS = runtime(settings={"mount tmp": "no", "user bind control": "no"})
OLD_SERVER = host(mpis=(msgspec.structs.replace(LAUNCHER, version="4.1.8", pmix="3.2.5"),))

FIRES = {
    "tmp-hidden": [
        case(of=PMIX_5, container=("--contain",)),
        case(of=PMIX_5, binds=("/scratch:/tmp",)),
        case(PRIVATE, PMIX_5),
        case(SPACES, PMIX_5),
        case(of=PMIX_5, mode="mpirun-host", container=("--contain",)),
        case(of=with_(PMIX_5, pmix_components={}), container=("--contain",)),
        case(SERVER_7, PMIX_7, container=("--contain",)),
    ],
    "tmp-not-mounted": [
        case(NO_TMP),
        case(container=("--no-mount", "tmp")),
        case(NO_BINDS, binds=("/tmp",)),
        case(NO_TMP, mode="mpirun-container", nodes=1),
        case(NO_TMP, mode="mpirun-host"),
        case(NO_TMP, mpi(version="2.1.1", interfaces=())),
    ],
}
QUIET = {
    "tmp-hidden": [
        case(of=PMIX_5),
        case(NO_SPACES, PMIX_5),
        case(unread(HOST, "slurm.settings")),
        case(of=PMIX_5, container=("--contain",), binds=("/tmp",)),
        case(of=PMIX_5, container=("--contain",), env={"PMIX_MCA_gds": "hash"}),
        case(container=("--contain",)),
        case(of=PMIX_5, container=("--containall",)),
        case(OLD_SERVER, PMIX_5, "mpirun-host", container=("--contain",)),
        case(of=PMIX_7, container=("--contain",)),
        case(of=with_(PMIX_7, pmix_components={}), container=("--contain",)),
        case(SERVER_7, PMIX_5, container=("--contain",)),
        case(host(pmix="5.0.1"), PMIX_5, container=("--contain",)),
        case(host(mpis=()), IMAGE, "mpirun-host", container=("--contain",)),
    ],
    "tmp-not-mounted": [
        case(),
        case(NO_TMP, binds=("/tmp",)),
        case(NO_TMP, image(mpi=MPICH)),
        case(NO_TMP, mpi(version="5.0.7"), env={"PMIX_MCA_gds": "hash"}),
        case(absent(HOST, "runtime")),
    ],
}
UNDECIDED = {
    "tmp-hidden": [
        case(of=unread(IMAGE, "pmix"), container=("--contain",)),
        case(unread(HOST, "slurm.settings"), PMIX_5),
    ],
    "tmp-not-mounted": [case(unread(HOST, "runtime.settings"))],
}
OUTCOMES = {"tmp-hidden": "init-failure", "tmp-not-mounted": "init-failure"}
