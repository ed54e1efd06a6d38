"""Test the rules about what a rank shares with its node: the network, the user id, the socket for PMI."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, LAUNCHER, MPICH, absent, case, runtime, unread, with_
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES
from toolkit.model.facts import ContainerRuntime
from toolkit.runtime import podman

FOUND = ContainerRuntime(name="podman", version="5.4.2", path="/usr/bin/podman", setuid=False)
PODMAN = msgspec.structs.replace(runtime(), runtime=FOUND)
ALONE = msgspec.structs.replace(
    PODMAN, runtime=msgspec.structs.replace(FOUND, settings={"private network": "no"})
)
OLD = msgspec.structs.replace(PODMAN, runtime=msgspec.structs.replace(FOUND, version="4.3.1"))
ON_LSF = absent(with_(runtime(name="ch-run", version="0.27"), schedulers=("lsf",)), "slurm")
ARCHIVE = with_(IMAGE, format="docker-archive")
OF_MPICH = with_(ARCHIVE, mpi=MPICH)
ALL = podman.standard(ARCHIVE, FOUND)


def less(option: str) -> tuple[str, ...]:
    return tuple(word for word in ALL if word != option)


HYDRA = with_(LAUNCHER, implementation="mpich", version="4.2.1", pmix=None, interfaces=("pmi1",))
BY_HYDRA, NO_SOCKET = with_(PODMAN, mpis=(HYDRA,)), less(podman.DESCRIPTOR)

FIRES = {
    "join-lacks-slurm": [case(ON_LSF, mode="mpirun-host", launcher=("jsrun",), container=("--join",))],
    "network-apart": [
        case(ALONE, ARCHIVE, container=less("--network=host")),
        case(ALONE, ARCHIVE, "mpirun-container", nodes=1, container=()),
        case(PODMAN, ARCHIVE, container=less("--network=host")),
        case(container=("--net",)),
    ],
    "user-inside-differs": [
        case(PODMAN, ARCHIVE, container=less("--userns=keep-id")),
        case(PODMAN, ARCHIVE, "mpirun-host", container=less("--userns=keep-id")),
        case(container=("--fakeroot",)),
    ],
    "pmi-socket-closed": [
        case(PODMAN, OF_MPICH, "srun-pmi2", container=less(podman.DESCRIPTOR)),
        case(OLD, OF_MPICH, "srun-pmi2", container=podman.standard(ARCHIVE, OLD.runtime)),
        case(BY_HYDRA, OF_MPICH, "mpirun-host", launcher=("mpiexec",), container=NO_SOCKET),
    ],
}
QUIET = {
    "join-lacks-slurm": [
        case(),
        case(runtime(name="ch-run", version="0.31"), container=("--join",)),
        case(ON_LSF, mode="mpirun-host", launcher=("jsrun",), container=("--join", "--join-ct=4")),
    ],
    "network-apart": [
        case(),
        case(PODMAN, ARCHIVE, container=ALL),
        case(PODMAN, ARCHIVE, "mpirun-container", nodes=1, container=()),
    ],
    "user-inside-differs": [
        case(),
        case(PODMAN, ARCHIVE, container=ALL),
        case(PODMAN, OF_MPICH, "srun-pmi2", container=less("--userns=keep-id")),
        case(PODMAN, ARCHIVE, container=()),
    ],
    "pmi-socket-closed": [
        case(),
        case(PODMAN, OF_MPICH, "srun-pmi2", container=ALL),
        case(PODMAN, ARCHIVE, container=less(podman.DESCRIPTOR)),
        case(PODMAN, OF_MPICH, "srun-pmi2", container=()),
        case(BY_HYDRA, OF_MPICH, "mpirun-host", launcher=("mpiexec", "-pmi-port"), container=NO_SOCKET),
    ],
}
UNDECIDED = {
    "join-lacks-slurm": [case(unread(ON_LSF, "slurm"), mode="mpirun-host", container=("--join",))],
    "network-apart": [case(unread(HOST, "runtime"))],
    "user-inside-differs": [
        case(PODMAN, unread(ARCHIVE, "mpi.interfaces"), container=less("--userns=keep-id"))
    ],
    "pmi-socket-closed": [case(PODMAN, unread(ARCHIVE, "mpi.interfaces"), "srun-pmi2", container=())],
}
OUTCOMES = {
    "join-lacks-slurm": "unavailable",
    "network-apart": "init-failure",
    "user-inside-differs": "init-failure",
    "pmi-socket-closed": "init-failure",
}


def test_open_mpi_5_waits_for_the_server_that_refuses_its_user():
    newer = with_(IMAGE, mpi=with_(IMAGE.mpi, version="5.0.10"))
    told = {of.mpi.version: predict_case(case(of=of, container=("--fakeroot",))) for of in (IMAGE, newer)}
    assert told == {IMAGE.mpi.version: ("init-failure", ("hang", "crash")), "5.0.10": ("hang", ())}


def predict_case(of) -> tuple[str, tuple[str, ...]]:
    rule = next(rule for rule in RULES if rule.id == "user-inside-differs")
    prediction, _ = judge(of, (rule,))
    return prediction.outcome, prediction.by_chance
