"""Rules about containers that do not share the network, the user ID or open files with their node."""

from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, LaunchStage, rule
from toolkit.engine.traits import brings_orte, runtime_of
from toolkit.engine.wireup import clearing_options, hides, interface_in_use, offer
from toolkit.model.prediction import Mode, Outcome
from toolkit.runtime.charliecloud import RUNTIME as CHARLIECLOUD

_FROM_HOST: tuple[Mode, ...] = ("srun-pmix", "srun-pmi2", "mpirun-host", "bind")
"""Launch modes in which each rank runs in its own container and connects to a launcher outside
the container.
"""


@rule(
    "network-apart",
    "Each container has its own network, so ranks may not reach each other",
    severity="error",
    fix="use the node's network: `podman run --network=host`, or Apptainer without `--net`",
    source="podman-run(1), --network; tests/matrix: 'without --network=host'",
    facts=("host.runtime",),
)
def network_apart(case: Case) -> Hit | None:
    """Ranks reach each other and their PMIx server at addresses of the node, which a container with a
    separate network does not have. Rootless podman creates a separate network with pasta or slirp4netns. If
    the host has neither pasta nor slirp4netns, podman fails with 'could not find pasta, the network namespace
    can't be configured'.
    """
    case.ask("host.runtime")
    found, runtime = hides(case, "network"), case.host_facts.runtime
    if not found or runtime is None:
        return None
    evidence = tuple(dict.fromkeys(found.values()))
    if runtime.settings.get("private network") == "no":
        because = (
            f"{runtime.name} creates a network for each container, and the host has neither pasta nor "
            "slirp4netns, which connect such networks"
        )
        return Hit(evidence, "init-failure", because, stage=LaunchStage.START)
    if case.mode in {"mpirun-container", "srun-none"}:
        return None
    return Hit(evidence, "unknown", "toolkit's developers have not tested launches with separate networks")


@rule(
    "user-inside-differs",
    "Ranks run with a user ID that the PMIx server does not expect",
    severity="error",
    fix="leave out `--fakeroot`; in podman, keep the user ID with `podman run --userns=keep-id`",
    source=(
        "openpmix/openpmix:src/mca/psec/native/psec_native.c at v5.0.7, validate_cred; "
        "tests/matrix: 'without --userns=keep-id', --fakeroot"
    ),
    facts=("image.mpi.interfaces",),
    modes=_FROM_HOST,
)
def user_inside_differs(case: Case) -> Hit | None:
    """A PMIx client sends its user ID, and the server compares this ID with the ID of the user who started
    the job. If the user is root inside the container, the client sends 0, and the server refuses the
    connection.
    """
    case.ask("image.mpi.interfaces")
    found, offered = hides(case, "identity"), offer(case)
    if not found or clearing_options(case) or offered is None or interface_in_use(case, offered) != "pmix":
        return None
    because = (
        f"with {next(iter(found))}, ranks have user ID 0; the PMIx server expects the user ID of the job"
    )
    # Open MPI 5 waits after the server refuses the connection; Open MPI 4 usually stops.
    older = brings_orte(case.image_facts.mpi)
    chance: tuple[Outcome, ...] = ("hang", "crash") if older else ()
    outcome: Outcome = "init-failure" if older else "hang"
    return Hit(tuple(dict.fromkeys(found.values())), outcome, because, by_chance=chance)


@rule(
    "pmi-socket-closed",
    "The container closes the socket through which ranks reach their PMI server",
    severity="error",
    fix=(
        "start containers with `--preserve-fd=$PMI_FD` (podman 5.0 or later with crun); or use "
        "Hydra's option `-pmi-port`; or use PMIx"
    ),
    source=(
        "podman-run(1), --preserve-fd; tests/matrix: 'without --preserve-fd=PMI_FD'; "
        "pmodels/mpich issue 5292 (-pmi-port)"
    ),
    facts=("image.mpi.interfaces",),
    modes=_FROM_HOST,
)
def pmi_socket_closed(case: Case) -> Hit | None:
    """Slurm and Hydra open a socket for each rank and set PMI_FD to the socket's file descriptor. Some
    runtimes close the socket when they start the container, but keep the variable PMI_FD. The rank then
    reports 'PMIU_write error; fd=14 … Bad file descriptor'. With ``-pmi-port``, Hydra sets PMI_PORT instead
    of PMI_FD, and ranks connect to this port.
    """
    if any(word.lstrip("-") == "pmi-port" for word in case.plan.launcher):
        return None
    case.ask("image.mpi.interfaces")
    found, offered = hides(case, "descriptors"), offer(case)
    if not found or clearing_options(case) or offered is None or interface_in_use(case, offered) != "pmi":
        return None
    because = f"with {next(iter(found))}, the file descriptor in PMI_FD is closed"
    return Hit(tuple(dict.fromkeys(found.values())), "init-failure", because)


@rule(
    "join-lacks-slurm",
    "`ch-run --join` does not find the other ranks of its node",
    severity="error",
    fix="give the ranks per node and a container name: `--join-ct=N --join-tag=NAME`; or leave out `--join`",
    source="hpc/charliecloud:doc/ch-run.rst, --join-ct, --join-tag; lanl/BEE issue 449 (Summit, LSF)",
    facts=("host.runtime", "host.slurm"),
)
def join_lacks_slurm(case: Case) -> Hit | None:
    """With ``--join``, the ranks of a node share one container. ch-run reads the number of ranks and the
    container's name from variables of a Slurm step, unless the options --join-ct and --join-tag give both.
    """
    words = case.plan.container
    if "--join" not in words or any(word.startswith(("--join-ct", "--join-pid")) for word in words):
        return None
    case.ask("host.runtime", "host.slurm")
    if case.host_facts.slurm is not None or runtime_of(case.host_facts) is not CHARLIECLOUD:
        return None
    because = "ch-run --join reads Slurm's variables, but another launcher starts the ranks"
    return Hit((f"plan: {' '.join(words)}", *case.cite("host.slurm")), "unavailable", because)
