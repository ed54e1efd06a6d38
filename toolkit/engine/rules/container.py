"""Rules about the options of the container: what they hide from MPI."""

from toolkit.engine.case import Case
from toolkit.engine.plans import container_option, host_launcher, tmp_is_private
from toolkit.engine.rule import Hit, Lacks, rule
from toolkit.versions import within

_CLEANS = {"-e", "--cleanenv", "-C", "--containall"}
_HIDES_TMP = {"-c", "--contain", "-C", "--containall"}
_SPLITS = {"-p", "--pid", "--unshare-pid", "-i", "--ipc", "--unshare-ipc"}
_TMP = "/tmp"  # noqa: S108 - the path that PMIx and Open MPI use


def _options(case: Case, wanted: set[str]) -> dict[str, str]:
    """Return options in force, with where each is said: the plan, or a variable that the runtime obeys."""
    found = {w: f"plan: singularity exec {' '.join(case.plan.container)}" for w in case.plan.container}
    for name in sorted(set(case.host.environment) - set(case.plan.unset)):
        if option := container_option(name):
            found.setdefault(f"--{option}", f"host: {name} is set")
    return {word: where for word, where in found.items() if word in wanted}


def _tmp_is_bound(case: Case) -> bool:
    runtime = case.host.runtime
    allowed = runtime is None or runtime.settings.get("user bind control") != "no"
    return allowed and any(bind.split(":")[0] == _TMP for bind in case.plan.binds)


@rule(
    "environment-cleaned",
    "The container is started without the variables that tell a rank who it is",
    severity="error",
    fix="leave --cleanenv and --containall out; unset single variables instead",
    source="Apptainer user guide, environment; tests/matrix: '--cleanenv', '--containall'",
    needs=("host.environment",),
    modes=("srun-pmix", "srun-pmi2", "mpirun-host"),
)
def environment_cleaned(case: Case) -> Hit | None:
    """Launchers hand rank, size and the address of their server over in PMIX_*, PMI_*, SLURM_*."""
    found = _options(case, _CLEANS)
    if not found:
        taken = [name for name in case.plan.unset if name.startswith("SLURM_")]
        because = f"what the MPI in the image does without {', '.join(taken)} is not known"
        return Hit((f"plan: env -u {' -u '.join(taken)}",), "unknown", because) if taken else None
    because = f"{next(iter(found))} strips PMIX_*, PMI_* and SLURM_*, so every rank believes to be alone"
    return Hit(tuple(dict.fromkeys(found.values())), "singletons", because)


@rule(
    "tmp-hidden",
    "The container does not see the host's /tmp, where the PMIx server keeps its segments",
    severity="error",
    fix="add --bind /tmp, or set PMIX_MCA_gds=hash",
    source="openpmix/openpmix:src/mca/gds/shmem2; tests/matrix: '--contain', 'job TmpDir=private'",
    needs=("image.mpi.interfaces", "image.pmix"),
    modes=("srun-pmix", "mpirun-host"),
)
def tmp_hidden(case: Case) -> Hit | None:
    """A PMIx 5 client reads the server's shared segments below /tmp; PMIx 3 and 4 clients do not use them."""
    if case.plan.env.get("PMIX_MCA_gds") == "hash":
        return None
    hidden = {} if _tmp_is_bound(case) else _options(case, _HIDES_TMP)
    for bind in case.plan.binds:
        source, _, target = bind.partition(":")
        if target.split(":")[0] == _TMP != source:
            hidden[f"--bind {bind}"] = f"plan: singularity exec --bind {bind}"
    if case.mode == "srun-pmix" and tmp_is_private(case.host):
        hidden["JobContainerType"] = "host: scontrol show config: JobContainerType = job_container/tmpfs"
    if not hidden:
        return None
    launcher = host_launcher(case.host)
    server = case.host.pmix if case.mode == "srun-pmix" else (launcher.pmix if launcher else None)
    if not within(case.image.pmix or "", ">=5") or (server and within(server, "<5")):
        return None
    return Hit(
        (*dict.fromkeys(hidden.values()), *case.cite("image.pmix")),
        "init-failure",
        f"with {next(iter(hidden))} the PMIx 5 client does not find the server's segments in /tmp",
    )


@rule(
    "tmp-not-mounted",
    "There is no writable /tmp in the container, where Open MPI keeps its session",
    severity="error",
    fix="add --bind /tmp; administrator: 'mount tmp = yes' in apptainer.conf",
    source="tests/matrix: 'apptainer --no-mount tmp', '--no-mount tmp plus PMIX_MCA_gds=hash'",
    needs=("image.mpi", "host.runtime"),
)
def tmp_not_mounted(case: Case) -> Hit | Lacks | None:
    """An image is read-only, and Open MPI makes its session directory below /tmp; MPICH needs none.

    With ``PMIX_MCA_gds=hash`` Open MPI 5 does without it.
    """
    mpi, runtime = case.image.mpi, case.host.runtime
    if mpi is None or runtime is None or mpi.implementation != "openmpi" or _tmp_is_bound(case):
        return None
    words = case.plan.container
    said = [f"plan: singularity exec {' '.join(words)}" for w in words if w == "tmp"]
    if runtime.settings.get("mount tmp") == "no":
        said.append("host: apptainer.conf: mount tmp = no")
    if not said:
        return Lacks(("host.runtime.settings",)) if "runtime.settings" in case.host.unknown else None
    if within(mpi.version or "", ">=5") and case.plan.env.get("PMIX_MCA_gds") == "hash":
        return None
    if case.mode == "mpirun-container":
        return Hit(tuple(said), "unknown", "Open MPI's own launcher without /tmp has not been measured")
    return Hit(tuple(said), "init-failure", "without /tmp Open MPI cannot make its session directory")


@rule(
    "namespaces-split-a-node",
    "Ranks of one node are in different user namespaces",
    severity="error",
    fix="start the container with --sharens (Apptainer 1.3), or use a setuid installation",
    source="apptainer/apptainer issue 769; tests/matrix: srun-pmi2-N1n2 against -sharens",
    needs=("image.mpi", "host.runtime"),
    modes=("srun-pmi2",),
)
def namespaces_split_a_node(case: Case) -> Hit | Lacks | None:
    """Without setuid every start of the container makes a user namespace of its own. Shared memory through
    /proc and cross-memory attach are refused between them; which builds of MPICH need those is no fact yet.
    """
    mpi, runtime = case.image.mpi, case.host.runtime
    if mpi is None or runtime is None or runtime.setuid or case.request.ranks_per_node == 1:
        return None
    if mpi.implementation not in {"mpich", "intelmpi"} or "--sharens" in case.plan.container:
        return None
    if runtime.setuid is None:
        return Lacks(("host.runtime.setuid",))
    because = "some builds of this MPI fail between user namespaces, and which is not known from its facts"
    return Hit(case.cite("host.runtime", "image.mpi"), "unknown", because)


@rule(
    "ranks-in-namespaces-of-their-own",
    "Ranks of one node do not see each other's processes or shared memory",
    severity="error",
    fix="leave --pid and --ipc out, and unset APPTAINER_PID and APPTAINER_IPC",
    source="tests/matrix: '2 ranks/node --ipc --pid'",
    needs=("host.environment",),
    modes=("srun-pmix", "srun-pmi2", "mpirun-host"),
)
def ranks_in_namespaces_of_their_own(case: Case) -> Hit | None:
    """With a namespace for each rank some builds of MPI crash, others fall back to the network."""
    found = _options(case, _SPLITS)
    if not found or case.request.ranks_per_node == 1:
        return None
    because = f"with {', '.join(found)} some builds of MPI crash, and which is not known from their facts"
    return Hit(tuple(dict.fromkeys(found.values())), "unknown", because)
