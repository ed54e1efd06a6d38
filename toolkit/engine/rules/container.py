"""Rules about the options of the container: what they hide from MPI."""

from toolkit.engine.case import Case
from toolkit.engine.plans import host_launcher
from toolkit.engine.rule import Hit, rule
from toolkit.versions import within

_CLEANS = {"-e", "--cleanenv", "-C", "--containall"}
_HIDES_TMP = {"-c", "--contain", "-C", "--containall"}


@rule(
    "environment-cleaned",
    "The container is started without the variables that tell a rank who it is",
    severity="error",
    fix="leave --cleanenv and --containall out; unset single variables instead",
    source="Apptainer user guide, environment; tests/matrix: '--cleanenv', '--containall'",
    modes=("srun-pmix", "srun-pmi2", "mpirun-host"),
)
def environment_cleaned(case: Case) -> Hit | None:
    """Launchers hand rank, size and the address of their server over in PMIX_*, PMI_*, SLURM_*."""
    words = [w for w in case.plan.container if w in _CLEANS]
    if not words:
        return None
    because = f"{words[0]} strips PMIX_*, PMI_* and SLURM_*, so every rank believes to be alone"
    return Hit((f"plan: singularity exec {' '.join(words)}",), "singletons", because)


@rule(
    "tmp-hidden",
    "The container does not see the host's /tmp, where the PMIx server keeps its segments",
    severity="error",
    fix="add --bind /tmp, or set PMIX_MCA_gds=hash",
    source="pmix facts, directories_a_container_must_see; tests/matrix: '--contain'",
    needs=("image.mpi.interfaces", "image.pmix"),
    modes=("srun-pmix", "mpirun-host"),
)
def tmp_hidden(case: Case) -> Hit | None:
    """A PMIx 5 client reads the server's shared segments below /tmp; PMIx 3 and 4 clients do not use them."""
    words = [w for w in case.plan.container if w in _HIDES_TMP]
    bound = any(bind.split(":")[0] == "/tmp" for bind in case.plan.binds)  # noqa: S108 - the path that PMIx uses
    if not words or bound or case.plan.env.get("PMIX_MCA_gds") == "hash":
        return None
    launcher = host_launcher(case.host)
    server = case.host.pmix if case.mode == "srun-pmix" else (launcher.pmix if launcher else None)
    if not within(case.image.pmix or "", ">=5") or (server and within(server, "<5")):
        return None
    return Hit(
        (f"plan: singularity exec {' '.join(words)}", *case.cite("image.pmix")),
        "init-failure",
        f"with {words[0]} the PMIx 5 client does not find the server's segments in /tmp",
    )


@rule(
    "namespaces-split-a-node",
    "Ranks of one node are in different user namespaces",
    severity="error",
    fix="start the container with --sharens (Apptainer 1.3), or use a setuid installation",
    source="apptainer/apptainer issue 769; tests/matrix: srun-pmi2-N1n2 against -sharens",
    needs=("image.mpi", "host.runtime.setuid"),
    modes=("srun-pmi2",),
)
def namespaces_split_a_node(case: Case) -> Hit | None:
    """Without setuid every start of the container makes a user namespace of its own. Shared memory through
    /proc and cross-memory attach are refused between them; which builds of MPICH need those is no fact yet.
    """
    mpi, runtime = case.image.mpi, case.host.runtime
    if mpi is None or runtime is None or runtime.setuid or case.request.ranks_per_node == 1:
        return None
    if mpi.implementation not in {"mpich", "intelmpi"} or "--sharens" in case.plan.container:
        return None
    because = "some builds of this MPI fail between user namespaces, and which is not known from its facts"
    return Hit(case.cite("host.runtime", "image.mpi"), "unknown", because)
