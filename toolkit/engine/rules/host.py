"""Rules about software and settings that the host needs to start ranks."""

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.rule import MPI_MODES, Hit, LaunchStage, rule
from toolkit.engine.rules.gpu import names_gpus
from toolkit.engine.traits import host_launcher, made_by_user, pmix_type, program_of, runtime_of
from toolkit.engine.wireup import IN_NAMESPACE, options
from toolkit.knowledge.pmix import is_plugin
from toolkit.model.prediction import PROGRAMS, Mode, Outcome
from toolkit.runtime.enroot import PYXIS, RUNTIME

OUTSIDE_SLURM: frozenset[Mode] = frozenset(
    {"mpirun-container", "mpirun-host", "gloo", "torch", "jax", "tf-config"}
)
"""Launch modes that can start several ranks on one machine without srun."""
_ALLOW = (
    "ask the administrators to allow user namespaces on the compute nodes (sysctl user.max_user_namespaces)"
)
_NAMES_HOSTS = frozenset(
    {
        *("-H", "--host", "-host", "--hosts", "-hosts", "-f"),
        *("--hostfile", "-hostfile", "--machinefile", "-machinefile"),
    }
)
"""Options of Open MPI's mpirun and of Hydra that name the hosts."""


@rule(
    "slurm-absent",
    "Slurm is not installed on this machine",
    severity="error",
    fix="name the cluster: `--host LOGIN`, `--cluster NAME` or `--facts FILE`;"
    " or run on this machine without Slurm: `toolkit launch --local`",
    source="sbatch(1), srun(1)",
    facts=("host.slurm",),
)
def slurm_absent(case: Case) -> Hit | None:
    """A Slurm job starts only through Slurm's commands, such as sbatch and srun.

    Some launches do not need Slurm. One rank, or several ranks without srun, can run on this machine (toolkit
    launch --local). Jobs of another scheduler (PBS, LSF) without srun, and an mpirun with a list of hosts,
    also need no Slurm.
    """
    if case.host.slurm is not None:
        return None
    if case.host_facts.schedulers and program_of(case.plan.launcher) != "srun":
        return None
    if case.mode == "mpirun-host" and any(w.partition("=")[0] in _NAMES_HOSTS for w in case.plan.launcher):
        return None
    if not case.request.allocation and (case.mode in OUTSIDE_SLURM or case.request.has_one_rank):
        return None
    return Hit(case.cite("host.slurm"), "unavailable")


@rule(
    "runtime-absent",
    "Neither Apptainer nor Singularity is on the host",
    severity="error",
    fix=(
        "load a module of Apptainer or Singularity (`module avail apptainer singularity` lists them); "
        "or ask the administrators to install Apptainer"
    ),
    source="Apptainer user guide, quick start",
    facts=("host.runtime",),
)
def runtime_absent(case: Case) -> Hit | None:
    """To start a SIF file, every node needs Apptainer or Singularity on PATH."""
    if case.host.runtime is not None:
        return None
    return Hit(case.cite("host.runtime"), "unavailable")


@rule(
    "user-namespaces-off",
    "The host cannot start containers: it allows no user namespaces, and the runtime has no setuid "
    "installation",
    severity="error",
    fix=(
        "ask the administrators to allow user namespaces (raise user.max_user_namespaces; if AppArmor "
        "forbids user namespaces, add a profile for Apptainer's starter), or to install apptainer-suid"
    ),
    source="Apptainer administrator guide, user namespaces; apptainer/apptainer issues 2027 and 2608",
    facts=("host.runtime", "host.runtime.setuid", "host.user_namespaces", "host.environment"),
)
def user_namespaces_off(case: Case) -> Hit | None:
    """enroot, podman, Charliecloud and an Apptainer without setuid create a user namespace for a container.
    If the kernel forbids user namespaces, Apptainer needs a setuid installation. The options --userns and
    --fakeroot need a user namespace even with a setuid installation.
    """
    case.ask("host.runtime")
    asked = options(case, IN_NAMESPACE)
    if case.host_facts.user_namespaces or (not asked and made_by_user(case.host_facts) is False):
        return None
    case.ask("host.user_namespaces")
    evidence = case.cite("host.user_namespaces", "host.runtime")
    if asked:
        because = f"{next(iter(asked))} needs a user namespace, which the host does not allow"
        fix = f"leave out {next(iter(asked))}; or {_ALLOW}"
        return Hit((*evidence, *asked.values()), "unavailable", because, because, fix)
    by_root = runtime_of(case.host_facts).BY_ROOT
    if by_root is None:
        case.ask("host.runtime.setuid")
        return Hit(evidence, "unavailable")
    name = case.host_facts.runtime.name if case.host_facts.runtime else ""
    because = f"{name} starts containers in user namespaces, which the host does not allow"
    return Hit(evidence, "unavailable", because, because, _ALLOW)


@rule(
    "user-namespaces-few",
    "The kernel allows fewer user namespaces than the ranks of a node need",
    severity="error",
    fix=(
        "start fewer ranks on each node; or let the ranks of a node share one user namespace with "
        "`--sharens` (Apptainer 1.3 or later); or ask the administrators to raise user.max_user_namespaces "
        "on the compute nodes"
    ),
    source=(
        "Apptainer 1.4.5: one user namespace for each container ('maximum number of user namespaces "
        "exceeded'); apptainer/apptainer issue 1686; NVIDIA/pyxis issue 93; user_namespaces(7), ENOSPC"
    ),
    facts=("host.runtime", "host.runtime.setuid", "host.user_namespaces_limit"),
)
def user_namespaces_few(case: Case) -> Hit | None:
    """Each rank in its own container uses one user namespace, and the kernel limits the namespaces of each
    user. The kernel may still count the namespaces of earlier job steps. In one public report, a job step
    that needed at least a third of the limit failed for this reason. toolkit therefore reports this fault if
    the ranks need more than a third of the limit.
    """
    limit, ranks = case.host_facts.user_namespaces_limit, case.request.ranks_per_node
    if case.mode in {"mpirun-container", "gloo"} or (limit is not None and not 0 < limit < 3 * ranks):
        return None
    if limit is None and not case.has_failed("host.user_namespaces_limit"):
        return None
    if options(case, {"--sharens"}) or not options(case, IN_NAMESPACE):
        made = made_by_user(case.host_facts)
        if made is False or options(case, {"--sharens"}):
            return None
        if made is None:
            case.ask("host.runtime.setuid")
    if limit is None:
        raise Undecided("host.user_namespaces_limit")
    because = f"{ranks} ranks on a node need {ranks} user namespaces; the kernel allows {limit}"
    by_chance: tuple[Outcome, ...] = ()
    if ranks <= limit:
        because = f"{because}, but may still count namespaces of earlier job steps"
        by_chance = ("ok",)
    evidence = case.cite("host.user_namespaces_limit", "host.runtime")
    return Hit(evidence, "unavailable", because, because, by_chance=by_chance)


@rule(
    "gpu-hook-lacks-program",
    "enroot cannot start a container with GPUs, because its GPU hook does not find nvidia-container-cli",
    severity="error",
    fix=(
        "ask the administrators to install libnvidia-container-tools on the nodes; or, to start without "
        "GPUs, export NVIDIA_VISIBLE_DEVICES=void before you submit"
    ),
    source="NVIDIA/enroot:conf/hooks/98-nvidia.sh; NVIDIA/pyxis issues 101 and 110 ('Command not found')",
    facts=("host.runtime", "host.gpus", "host.gpu_container_cli", "image.environment", "image.cuda"),
)
def gpu_hook_lacks_program(case: Case) -> Hit | None:
    """If NVIDIA_VISIBLE_DEVICES is set, enroot runs its GPU hook, which calls nvidia-container-cli. Images
    with CUDA usually set this variable. If the hook fails, enroot does not start the container.
    """
    host, kind = case.host_facts, runtime_of(case.host_facts)
    if host.runtime is None or kind not in (RUNTIME, PYXIS) or not names_gpus(case):
        return None
    if not host.gpus and not case.has_failed("host.gpus"):
        return None
    case.ask("host.gpus", "host.gpu_container_cli", failed_only=True)
    if "gpu_container_cli" not in host.absent:
        return None
    because = "enroot's hook for GPUs fails because the node has no nvidia-container-cli"
    return Hit(case.cite("host.gpu_container_cli", "host.gpus"), "unavailable", because, because)


@rule(
    "too-few-nodes",
    "Slurm has fewer nodes than the job requests",
    severity="error",
    fix="with `--nodes`, request at most as many nodes as `sinfo` shows for a partition",
    source="sbatch(1): --nodes; srun(1): 'Requested node configuration is not available'",
    facts=("host.slurm",),
)
def too_few_nodes(case: Case) -> Hit | None:
    """If the job requests more nodes than any partition has, sbatch refuses the job, or the job never starts.

    This rule reports nothing if sinfo does not print the number of nodes.
    """
    slurm = case.host.slurm
    if slurm is None or slurm.nodes is None or case.request.nodes <= slurm.nodes:
        return None
    pair = f"job requests {case.request.nodes} nodes; the largest partition has {slurm.nodes}"
    evidence = (f"host: sinfo: the largest partition has {slurm.nodes} nodes",)
    return Hit(evidence, "unavailable", f"the {pair}", title=f"The {pair}")


@rule(
    "architecture-differs",
    "The image and the host have different processor architectures",
    severity="error",
    fix="build the image on a machine with the cluster's processor architecture",
    source="execve(2): ENOEXEC; Apptainer user guide",
    facts=("host.architecture", "image.architecture"),
)
def architecture_differs(case: Case) -> Hit | None:
    """If a program was built for a different processor architecture, the program does not start on the host
    ('Exec format error').
    """
    case.ask("host.architecture", "image.architecture")
    if case.host.architecture == case.image.architecture:
        return None
    pair = f"image was built for {case.image.architecture}; the host has {case.host.architecture}"
    evidence = case.cite("host.architecture", "image.architecture")
    return Hit(evidence, "loader-failure", f"the {pair}", title=f"The {pair}")


@rule(
    "slurm-lacks-pmix",
    "Slurm has no PMIx plugin",
    severity="error",
    fix="ask the administrators to install Slurm's PMIx plugin (Slurm's configure option `--with-pmix`)",
    instead=MPI_MODES,
    source="Slurm MPI Users Guide; srun(1) --mpi=list",
    facts=("host.slurm.mpi_types",),
    modes=("srun-pmix",),
    programs=PROGRAMS,
)
def slurm_lacks_pmix(case: Case) -> Hit | None:
    """``srun --mpi=pmix`` fails if ``srun --mpi=list`` does not list pmix."""
    case.ask("host.slurm.mpi_types")
    if pmix_type(case.host):
        return None
    return Hit(case.cite("host.slurm.mpi_types"), "unavailable")


@rule(
    "slurm-lacks-pmi2",
    "Slurm has no PMI-2 plugin",
    severity="error",
    fix="ask the administrators to install Slurm's pmi2 plugin",
    instead=MPI_MODES,
    source="Slurm MPI Users Guide; srun(1) --mpi=list",
    facts=("host.slurm.mpi_types",),
    modes=("srun-pmi2",),
    programs=PROGRAMS,
)
def slurm_lacks_pmi2(case: Case) -> Hit | None:
    """``srun --mpi=pmi2`` fails if ``srun --mpi=list`` does not list pmi2."""
    case.ask("host.slurm.mpi_types")
    slurm = case.host.slurm
    if slurm is None or "pmi2" in (slurm.mpi_types or ()):
        return None
    return Hit(case.cite("host.slurm.mpi_types"), "unavailable")


@rule(
    "mpi-type-not-offered",
    "Slurm does not offer the --mpi type that the site profile names",
    severity="error",
    fix="set launch.mpi in the site profile to a type that `srun --mpi=list` prints; or leave out `--site`",
    instead=MPI_MODES,
    source="srun(1), --mpi: srun rejects an unknown type",
    facts=("host.slurm.mpi_types",),
    modes=("srun-pmix", "srun-pmi2", "bind"),
    programs=PROGRAMS,
)
def mpi_type_not_offered(case: Case) -> Hit | None:
    """A site profile names the --mpi type for one Slurm release on one cluster. After an update of Slurm, or
    on another cluster, Slurm may not have this type.
    """
    case.ask("host.slurm.mpi_types")
    types = (case.host.slurm.mpi_types if case.host.slurm else None) or ()
    word = next((word for word in case.plan.launcher if word.startswith("--mpi=")), "")
    kind = word.removeprefix("--mpi=")
    # If Slurm offers no PMIx type at all, the rule slurm-lacks-pmix reports the fault in the mode srun-pmix.
    # If Slurm offers only PMIx types, the rule slurm-lacks-pmi2 reports the fault in the mode srun-pmi2.
    if kind in {"", "none", *types} or not any(is_plugin(t) == is_plugin(kind) for t in types if t != "none"):
        return None
    offered = ", ".join(types)
    because = f"the site profile names {word}; srun offers {offered}"
    return Hit((*case.cite("host.slurm.mpi_types"), f"plan: {word}"), "unavailable", because)


@rule(
    "host-launcher-absent",
    "The host has no mpirun",
    severity="error",
    fix="load the module of an MPI before you launch the job",
    instead=MPI_MODES,
    source="Apptainer user guide, MPI: hybrid model",
    facts=("host.mpis",),
    modes=("mpirun-host",),
    programs=PROGRAMS,
)
def host_launcher_absent(case: Case) -> Hit | None:
    """The launch mode mpirun-host needs an mpirun on the job's PATH, outside the container."""
    if host_launcher(case.host) or knowledge.mpi().starters(program_of(case.plan.launcher)):
        return None
    return Hit(case.cite("host.mpis"), "unavailable")


@rule(
    "host-launcher-broken",
    "The host's mpirun does not start",
    severity="error",
    fix=(
        "load the module of mpirun's MPI and all modules that this module needs, or add the MPI's lib folder "
        "to LD_LIBRARY_PATH"
    ),
    instead=MPI_MODES,
    source="ld.so(8): 'error while loading shared libraries'",
    facts=("host.mpis",),
    modes=("mpirun-host",),
    programs=PROGRAMS,
)
def host_launcher_broken(case: Case) -> Hit | None:
    """The host's PATH contains mpirun, but the host's loader does not find all libraries of mpirun."""
    host = host_launcher(case.host)
    if host is None or not host.lacks:
        return None
    because = f"{host.launcher} needs {', '.join(host.lacks)}, which the host's loader does not find"
    return Hit(case.cite("host.mpis"), "loader-failure", because, stage=LaunchStage.START)


@rule(
    "mpi-default-none",
    "On this cluster, srun without --mpi offers no PMI to the ranks",
    severity="info",
    fix="always give srun an interface: `srun --mpi=…` (as `toolkit launch` does)",
    source="srun(1): --mpi, MpiDefault; tests/matrix: 'srun without --mpi'",
    facts=("host.slurm.mpi_default",),
    modes=("srun-pmix",),
    advice=True,
)
def mpi_default_none(case: Case) -> Hit | None:
    """With MpiDefault=none, a plain ``srun`` starts ranks that cannot find each other.

    A launch with ``srun --mpi`` can work. This finding explains why a command that works with ``srun --mpi``
    fails without ``--mpi``.
    """
    case.ask("host.slurm.mpi_default")
    slurm = case.host.slurm
    if slurm is None or slurm.mpi_default != "none":
        return None
    return Hit(case.cite("host.slurm.mpi_default"))
