"""Rules about what the container sees and inherits of its host: folders, variables, PMIx's store."""

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.engine.searched import forced_paths
from toolkit.engine.traits import bind_target
from toolkit.folders import is_below
from toolkit.versions import within

_MOUNTED = ("/tmp", "/var/tmp", "/dev/shm", "~")  # noqa: S108 - what Apptainer mounts without being asked


def _bound(case: Case, folder: str) -> bool:
    """Tell whether a folder of the host is seen inside under its own name."""
    sources = ((bind.split(":")[0], bind_target(bind)) for bind in case.plan.binds)
    named = [source for source, target in sources if source == target]
    return any(is_below(folder, top) for top in (*_MOUNTED, *named))


def _inherited(case: Case, name: str) -> bool:
    return name in case.host.environment and name not in case.plan.unset


def _said(case: Case, name: str) -> str:
    value = case.host.environment.get(name, "")
    return f"host: {name}={value}" if value else f"host: {name} is set"


@rule(
    "tmpdir-not-in-container",
    "TMPDIR names a folder that the container does not have",
    severity="warning",
    fix='--env TMPDIR=/tmp, or bind the folder: --bind "$TMPDIR"',
    source="Apptainer user guide, environment and bind paths; Python documentation, tempfile",
    facts=("host.tmpdir",),
    advice=True,
)
def tmpdir_not_in_container(case: Case) -> Hit | None:
    """The variable is handed on, the folder is not: Open MPI cannot make its session directory there, Python
    falls back to another folder, and other programs end with 'No such file or directory'.
    """
    folder = case.host.tmpdir
    if folder is None or "TMPDIR" in {*case.plan.env, *case.plan.unset} or _bound(case, folder):
        return None
    return Hit(case.cite("host.tmpdir"))


@rule(
    "tmpdir-not-usable",
    "TMPDIR names a folder that cannot be written",
    severity="warning",
    fix='make the folder in the job script (mkdir -p "$TMPDIR"), or --env TMPDIR=/tmp',
    source="environ(7): TMPDIR; open-mpi/ompi: session directories below TMPDIR",
    facts=("host.tmpdir_usable",),
    advice=True,
)
def tmpdir_not_usable(case: Case) -> Hit | None:
    """A TMPDIR that was set on the login node is often not there on compute nodes, and everything that wants
    a temporary file fails.
    """
    if case.host.tmpdir_usable is not False or "TMPDIR" in {*case.plan.env, *case.plan.unset}:
        return None
    return Hit(case.cite("host.tmpdir_usable"))


@rule(
    "slurm-tmp-not-mounted",
    "Slurm's folder for temporary files is not seen in the container",
    severity="warning",
    fix="bind it: --bind FOLDER (TmpFS or PMIxCliTmpDirBase of scontrol show config)",
    source="SchedMD/slurm:src/plugins/mpi/pmix/pmixp_info.c at slurm-22-05-8-1: cli_tmpdir, spmix_appdir_…",
    facts=("host.slurm",),
    modes=("srun-pmix",),
    advice=True,
)
def slurm_tmp_not_mounted(case: Case) -> Hit | None:
    """Slurm's PMIx plugin makes a session folder below TmpFS and tells its name to the ranks. Where TmpFS is
    not /tmp, the container does not have it. From 22.05 on mpi.conf may name another folder.
    """
    case.ask("host.slurm")
    settings = case.host_facts.slurm.settings if case.host_facts.slurm else {}
    names = ("PMIxCliTmpDirBase", "TmpFS")
    name = next((name for name in names if settings.get(name, "").startswith("/")), "TmpFS")
    folder = settings.get(name, "")
    if not folder.startswith("/") or _bound(case, folder):
        return None
    fix = f"bind it: --bind {folder}"
    return Hit((f"host: scontrol show config: {name} = {folder}",), fix=fix)


@rule(
    "pmix-folder-not-mounted",
    "The PMIx server's folder is not seen in the container, so PMIx answers by messages",
    severity="info",
    fix="nothing for most jobs; for thousands of ranks bind SlurmdSpoolDir",
    source="SchedMD/slurm:src/plugins/mpi/pmix/pmixp_info.c; openpmix/openpmix:src/mca/gds",
    facts=("host.pmix", "image.pmix", "host.slurm.settings", "image.pmix_components"),
    modes=("srun-pmix",),
    advice=True,
)
def pmix_folder_not_mounted(case: Case) -> Hit | None:
    """PMIX_SERVER_TMPDIR, where servers before PMIx 5 keep their shared store, lies below SlurmdSpoolDir. A
    client that does not see it asks by messages, which is right, and slower to start with very many ranks.
    """
    case.have("host.pmix", "image.pmix")
    folder = case.host_facts.slurm.settings.get("SlurmdSpoolDir", "") if case.host_facts.slurm else ""
    known = knowledge.pmix().stores
    stores = set(case.image_facts.pmix_components.get("gds", ())) & set(known.files)
    if not folder or not stores or within(case.host_facts.pmix or "", known.in_tmp) or _bound(case, folder):
        return None
    if case.plan.env.get("PMIX_MCA_gds") == "hash":
        return None
    evidence = (
        f"host: scontrol show config: SlurmdSpoolDir = {folder}",
        *case.cite("image.pmix", "host.pmix"),
    )
    return Hit(evidence)


@rule(
    "pmix-store-of-early-5",
    "Server and client of PMIx have stores that do not read each other",
    severity="warning",
    fix="--env PMIX_MCA_gds=hash",
    source="openpmix/openpmix:docs/news/news-v5.x: 5.0.2 replaced shmem by shmem2",
    facts=("host.pmix", "image.pmix"),
    modes=("srun-pmix",),
    advice=True,
)
def pmix_store_of_early_5(case: Case) -> Hit | None:
    """PMIx 5.0.0 and 5.0.1 keep their shared store in a way of their own (shmem), which later releases cannot
    read and which cannot read theirs.
    """
    case.have("host.pmix", "image.pmix")
    if case.plan.env.get("PMIX_MCA_gds") == "hash":
        return None
    server, client = case.host.pmix or "", case.image.pmix or ""
    known = knowledge.pmix().stores
    early = [within(version, known.early) for version in (server, client)]
    if early[0] == early[1] or not all(within(version, known.in_tmp) for version in (server, client)):
        return None
    return Hit(case.cite("host.pmix", "image.pmix"))


@rule(
    "pmix-lacks-native-security",
    "The PMIx client in the image cannot prove who it is in the usual way",
    severity="warning",
    fix="bind the munge socket (--bind /run/munge), or rebuild PMIx with its component psec/native",
    source="openpmix/openpmix:src/mca/psec; Slurm MPI Users Guide, PMIX_MCA_psec",
    facts=("image.pmix", "image.pmix_components", "host.munge"),
    modes=("srun-pmix", "mpirun-host"),
    advice=True,
)
def pmix_lacks_native_security(case: Case) -> Hit | None:
    """Server and client have to share a way to prove the user's identity (psec). 'native' is in nearly every
    build. A client with munge alone needs the host's munge socket, which a container does not have, and one
    with neither is refused: INVALID-CREDENTIAL.
    """
    case.have("image.pmix")
    ways = set(case.image_facts.pmix_components.get("psec", ()))
    if not ways or "native" in ways:
        return None
    reached = "munge" in ways and case.host_facts.munge and _bound(case, "/run/munge")
    return None if reached else Hit(case.cite("image.pmix_components", "host.munge"))


@rule(
    "preload-leaks",
    "LD_PRELOAD of the host reaches the container",
    severity="warning",
    fix="unset LD_PRELOAD before the job (env -u LD_PRELOAD)",
    source="Apptainer user guide, environment; ld.so(8), LD_PRELOAD",
    facts=("host.environment",),
    advice=True,
)
def preload_leaks(case: Case) -> Hit | None:
    """The loader of the container looks for a library of the host. Mostly it is not there, and every program
    says "object '…' from LD_PRELOAD cannot be preloaded: ignored"; where it is there, it may be of another C
    library and end the program.
    """
    case.ask("host.environment")
    return Hit((_said(case, "LD_PRELOAD"),)) if _inherited(case, "LD_PRELOAD") else None


@rule(
    "library-path-forced",
    "A variable of the host replaces the image's search path for libraries",
    severity="warning",
    fix="unset it before the job; paths of the image belong into the image's own environment",
    source="Apptainer user guide, environment: APPTAINERENV_LD_LIBRARY_PATH",
    facts=("host.environment",),
    advice=True,
)
def library_path_forced(case: Case) -> Hit | None:
    """LD_LIBRARY_PATH of the host stays outside; APPTAINERENV_LD_LIBRARY_PATH is set inside, in place of what
    the image sets. Libraries that the image finds by its own path are then missing or others.
    """
    case.ask("host.environment")
    names = [name for name in forced_paths(case.host_facts) if _inherited(case, name)]
    return Hit(tuple(_said(case, name) for name in names)) if names else None


@rule(
    "nodes-differ",
    "The compute nodes are not alike",
    severity="warning",
    fix="ask for nodes of one kind (--partition, --constraint), or judge each kind by facts of its own",
    source="toolkit probe on all nodes: facts that differ between them",
    facts=("host.compute_nodes",),
    advice=True,
)
def nodes_differ(case: Case) -> Hit | None:
    """A job that spans nodes of two kinds works only where it works on both. What was read here is that of
    the kind with most nodes.
    """
    case.ask("host.compute_nodes")
    lines = tuple(f"host: {name} is {what}" for name, what in sorted(case.host_facts.differs.items()))
    return Hit(lines) if lines else None


@rule(
    "compute-nodes-not-asked",
    "No compute node was asked: what is known is of the login node",
    severity="info",
    fix="ask them: toolkit probe on the cluster with its nodes; or probe inside a job",
    source="toolkit probe: srun on the nodes of a partition",
    facts=("host.slurm", "host.compute_nodes"),
    advice=True,
)
def compute_nodes_not_asked(case: Case) -> Hit | None:
    """Login nodes often have no GPU, no InfiniBand, other processors and other limits than compute nodes."""
    case.have("host.slurm")
    if case.host.compute_nodes:
        return None
    case.ask("host.compute_nodes")
    return Hit(case.cite("host.compute_nodes"))
