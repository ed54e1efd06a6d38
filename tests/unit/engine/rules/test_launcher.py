"""mpirun: the host's outside the container, and the image's inside."""

import msgspec

from tests.unit.engine.whole import IMAGE, LAUNCHER, MPICH, absent, case, host, image, mpi, unread, with_
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES

UNSET = {"unset": LAUNCHER.leaks, "env": {"SLURM_STEP_ID": "0"}}
ORTE = msgspec.structs.replace(
    LAUNCHER, version="4.1.8", pmix="3.2.5", leaks=("OPAL_PREFIX", "PMIX_INSTALL_PREFIX"), plugins=None
)
WHEEL = with_(mpi(version="4.1.8", plugins=False), pmix="3.2.5")
HYDRA = msgspec.structs.replace(LAUNCHER, implementation="mpich", version="4.2.1", pmix=None, leaks=())
NO_SSH = absent(IMAGE, "ssh")
OPEN_MPI_FIRST = image(
    mpi=msgspec.structs.replace(MPICH, launcher="/opt/mpich/bin/mpiexec.hydra"),
    other_mpis=(IMAGE.mpi,),
    mpirun=IMAGE.mpi.launcher,
)
PMIX_ALONE = image(mpi=msgspec.structs.replace(MPICH, version="4.2.0", interfaces=("pmix",)))
FORK = {"launcher": ("/usr/bin/mpirun", "-launcher", "fork")}
BY_AGENT = {"launcher": ("/usr/bin/mpirun", "--mca", "plm_rsh_agent", "toolkit-agent")}

FIRES = {
    "host-launcher-leaks": [
        case(mode="mpirun-host", env={"SLURM_STEP_ID": "0"}),
        case(host(mpis=(msgspec.structs.replace(LAUNCHER, leaks=None),)), mode="mpirun-host"),
    ],
    "launcher-prefix-half-removed": [case(host(mpis=(ORTE,)), WHEEL, "mpirun-host", unset=("OPAL_PREFIX",))],
    "launcher-pmix-pair": [
        case(of=WHEEL, mode="mpirun-host", env={"SLURM_STEP_ID": "0"}),
        case(of=with_(IMAGE, pmix="9.0.0"), mode="mpirun-host", **UNSET),
        case(of=with_(IMAGE, pmix="2.1.0"), mode="mpirun-host", nodes=1, **UNSET),
    ],
    "container-launcher-absent": [
        case(
            of=with_(mpi(launcher=None), absent={**IMAGE.absent, "mpi.launcher": "none"}),
            mode="mpirun-container",
        )
    ],
    "container-launcher-fails": [
        case(mode="mpirun-container"),
        case(of=NO_SSH, mode="mpirun-container", nodes=1),
        case(of=image(mpi=MPICH), mode="mpirun-container", nodes=1),
        case(of=mpi(implementation="cray"), mode="mpirun-container", nodes=1),
        case(of=OPEN_MPI_FIRST, mode="mpirun-container", nodes=1, launcher=("mpirun",)),
        case(of=PMIX_ALONE, mode="mpirun-container", nodes=1, **FORK),
        case(of=mpi(version="3.1.6"), mode="mpirun-container", **BY_AGENT),
        case(mode="mpirun-container", allocation=False, **BY_AGENT),
    ],
}
QUIET = {
    "host-launcher-leaks": [
        case(mode="mpirun-host", **UNSET),
        case(of=mpi(plugins=False), mode="mpirun-host"),
        case(host(mpis=(HYDRA,)), mode="mpirun-host"),
    ],
    "launcher-prefix-half-removed": [
        case(mode="mpirun-host", **UNSET),
        case(host(mpis=(ORTE,)), WHEEL, "mpirun-host"),
        case(host(mpis=(ORTE,)), WHEEL, "mpirun-host", unset=ORTE.leaks),
    ],
    "launcher-pmix-pair": [
        case(mode="mpirun-host", **UNSET),
        case(of=absent(image(mpi=MPICH), "pmix"), mode="mpirun-host"),
        case(host(mpis=(HYDRA,)), mode="mpirun-host"),
    ],
    "container-launcher-absent": [
        case(mode="mpirun-container"),
        case(of=absent(IMAGE, "mpi"), mode="mpirun-container"),
    ],
    "container-launcher-fails": [
        case(mode="mpirun-container", nodes=1),
        case(mode="mpirun-container", **BY_AGENT),
        case(of=NO_SSH, mode="mpirun-container", ranks_per_node=2, **BY_AGENT),
        case(
            of=with_(mpi(launcher=None), absent={**IMAGE.absent, "mpi.launcher": "none"}),
            mode="mpirun-container",
        ),
        case(of=image(mpi=MPICH), mode="mpirun-container", nodes=1, **FORK),
        case(of=image(mpi=MPICH), mode="mpirun-container", nodes=1, allocation=False),
    ],
}
UNDECIDED = {
    "launcher-pmix-pair": [case(of=unread(IMAGE, "pmix"), mode="mpirun-host")],
    "container-launcher-fails": [
        case(of=unread(IMAGE, "ssh"), mode="mpirun-container"),
        case(of=unread(OPEN_MPI_FIRST, "mpirun"), mode="mpirun-container", launcher=("mpirun",)),
    ],
}
OUTCOMES = {
    "host-launcher-leaks": "init-failure",
    "launcher-prefix-half-removed": "init-failure",
    "launcher-pmix-pair": "init-failure",
    "container-launcher-absent": "unavailable",
    "container-launcher-fails": "init-failure",
}


def test_what_was_not_seen_or_measured_is_unknown():
    exports, pair = FIRES["host-launcher-leaks"][1], FIRES["launcher-pmix-pair"][1]
    assert [judge(of, RULES)[0].outcome for of in (exports, pair)] == ["unknown", "unknown"]
