"""Rules about folders, variables and PMIx data that a container shares, or must share, with its host."""

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.rule import Hit, rule
from toolkit.engine.search_path import forced_paths
from toolkit.engine.traits import bind_target
from toolkit.folders import is_below
from toolkit.versions import within

_MOUNTED = ("/tmp", "/var/tmp", "/dev/shm", "~")  # noqa: S108 - Apptainer's default mounts


def _bound(case: Case, folder: str) -> bool:
    """Return whether a folder of the host is mounted in the container at the path that it has on the host."""
    sources = ((bind.split(":")[0], bind_target(bind)) for bind in case.plan.binds)
    named = [source for source, target in sources if source == target]
    return any(is_below(folder, top) for top in (*_MOUNTED, *named))


def _is_inherited(case: Case, name: str) -> bool:
    return name in case.host.environment and name not in case.plan.unset


def _cite_variable(case: Case, name: str) -> str:
    value = case.host.environment.get(name, "")
    return f"host: {name}={value}" if value else f"host: {name} is set"


@rule(
    "tmpdir-not-in-container",
    "TMPDIR names a folder that the container does not have",
    severity="warning",
    fix='add `--env TMPDIR=/tmp`, or bind the folder: `--bind "$TMPDIR"`',
    source="Apptainer user guide, environment and bind paths; Python documentation, tempfile",
    facts=("host.tmpdir",),
    advice=True,
)
def tmpdir_not_in_container(case: Case) -> Hit | None:
    """The runtime passes the variable TMPDIR to the container, but does not mount the folder that TMPDIR
    names. If the container lacks the folder, Open MPI cannot create its session directory, and Python uses
    another folder. Other programs that use TMPDIR fail with 'No such file or directory'.
    """
    folder = case.host.tmpdir
    return Hit(case.cite("host.tmpdir")) if lacks_tmpdir(case, folder) else None


def lacks_tmpdir(case: Case, folder: str | None) -> bool:
    """Return whether the launch passes the host's TMPDIR to the ranks, but does not mount ``folder``, the
    folder that TMPDIR names.
    """
    set_by_plan = "TMPDIR" in {*case.plan.env, *case.plan.unset}
    return folder is not None and not set_by_plan and not _bound(case, folder)


@rule(
    "tmpdir-not-usable",
    "TMPDIR names a folder that is not writable",
    severity="warning",
    fix='create the folder in the job script (`mkdir -p "$TMPDIR"`), or add `--env TMPDIR=/tmp`',
    source="environ(7): TMPDIR; open-mpi/ompi: session directories below TMPDIR",
    facts=("host.tmpdir_usable",),
    advice=True,
)
def tmpdir_not_usable(case: Case) -> Hit | None:
    """A job inherits TMPDIR from the login node, but compute nodes often lack the folder that TMPDIR names.
    Programs that create temporary files then fail.
    """
    if case.host.tmpdir_usable is not False or "TMPDIR" in {*case.plan.env, *case.plan.unset}:
        return None
    return Hit(case.cite("host.tmpdir_usable"))


@rule(
    "slurm-tmp-not-mounted",
    "The container does not have Slurm's folder for temporary files",
    severity="warning",
    fix=(
        "bind the folder that `scontrol show config` prints for PMIxCliTmpDirBase or, if this setting is "
        "empty, for TmpFS: `--bind FOLDER`"
    ),
    source="SchedMD/slurm:src/plugins/mpi/pmix/pmixp_info.c at slurm-22-05-8-1: cli_tmpdir, spmix_appdir_…",
    facts=("host.slurm",),
    modes=("srun-pmix",),
    advice=True,
)
def slurm_tmp_not_mounted(case: Case) -> Hit | None:
    """Slurm's PMIx plugin creates a session folder and passes the folder's name to the ranks. The session
    folder is below the folder TmpFS (slurm.conf) or, if set, PMIxCliTmpDirBase (mpi.conf, since Slurm 22.05).
    If TmpFS or PMIxCliTmpDirBase is not /tmp, the container often does not have the session folder.
    """
    case.ask("host.slurm")
    settings = case.host_facts.slurm.settings if case.host_facts.slurm else {}
    names = ("PMIxCliTmpDirBase", "TmpFS")
    name = next((name for name in names if settings.get(name, "").startswith("/")), "TmpFS")
    folder = settings.get(name, "")
    if not folder.startswith("/") or _bound(case, folder):
        return None
    fix = f"bind Slurm's folder: `--bind {folder}`"
    return Hit((f"host: scontrol show config: {name} = {folder}",), fix=fix)


@rule(
    "pmix-folder-not-mounted",
    "The container does not have the PMIx server's folder, so PMIx uses messages instead of shared memory",
    severity="info",
    fix=(
        "change nothing for most jobs; for thousands of ranks, bind the folder that `scontrol show config` "
        "prints for SlurmdSpoolDir: `--bind FOLDER`"
    ),
    source="SchedMD/slurm:src/plugins/mpi/pmix/pmixp_info.c; openpmix/openpmix:src/mca/gds",
    facts=("host.pmix", "image.pmix", "host.slurm.settings", "image.pmix_components"),
    modes=("srun-pmix",),
    advice=True,
)
def pmix_folder_not_mounted(case: Case) -> Hit | None:
    """PMIx servers before release 5 keep their shared memory in the folder that PMIX_SERVER_TMPDIR names.
    This folder is below Slurm's SlurmdSpoolDir. A PMIx client that cannot read this folder sends messages to
    the server instead of using shared memory. The launch works, but jobs with thousands of ranks start more
    slowly than with shared memory.
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
    "The PMIx server and client use incompatible formats of shared memory",
    severity="warning",
    fix="use messages instead of shared memory: `--env PMIX_MCA_gds=hash`",
    source="openpmix/openpmix:docs/news/news-v5.x: 5.0.2 replaced shmem by shmem2",
    facts=("host.pmix", "image.pmix"),
    modes=("srun-pmix",),
    advice=True,
)
def pmix_store_of_early_5(case: Case) -> Hit | None:
    """PMIx 5.0.0 and 5.0.1 write shared memory in the format shmem. PMIx 5.0.2 and later write the format
    shmem2. Releases with different formats cannot read each other's shared memory.
    """
    case.have("host.pmix", "image.pmix")
    if case.plan.env.get("PMIX_MCA_gds") == "hash":
        return None
    server, client = case.host.pmix or "", case.image.pmix or ""
    known = knowledge.pmix().stores
    early = [within(version, known.early) for version in (server, client)]
    if early[0] == early[1] or not all(within(version, known.in_tmp) for version in (server, client)):
        return None
    title = f"The PMIx server {server} and the client {client} use incompatible formats of shared memory"
    return Hit(case.cite("host.pmix", "image.pmix"), title=title)


@rule(
    "pmix-lacks-native-security",
    "The PMIx client in the image lacks the security module 'native'",
    severity="warning",
    fix=(
        "bind the host's munge socket: `--bind /run/munge`; or rebuild the image's PMIx with the component "
        "psec/native"
    ),
    source="openpmix/openpmix:src/mca/psec; Slurm MPI Users Guide, PMIX_MCA_psec",
    facts=("image.pmix", "image.pmix_components", "host.munge"),
    modes=("srun-pmix", "mpirun-host"),
    advice=True,
)
def pmix_lacks_native_security(case: Case) -> Hit | None:
    """The PMIx server and its client need a common security module (psec), which proves the user's identity.
    Nearly every build of PMIx has the module 'native'. A client that has only the module 'munge' needs the
    host's munge socket, which a container has only if a bind mounts it. If a client can use neither module,
    the server refuses the client with the error INVALID-CREDENTIAL.
    """
    case.have("image.pmix")
    ways = set(case.image_facts.pmix_components.get("psec", ()))
    if not ways or "native" in ways:
        return None
    reached = "munge" in ways and case.host_facts.munge and _bound(case, "/run/munge")
    return None if reached else Hit(case.cite("image.pmix_components", "host.munge"))


@rule(
    "preload-leaks",
    "The container inherits LD_PRELOAD from the host",
    severity="warning",
    fix="unset the variable before you launch the job: `unset LD_PRELOAD`",
    source="Apptainer user guide, environment; ld.so(8), LD_PRELOAD",
    facts=("host.environment",),
    advice=True,
)
def preload_leaks(case: Case) -> Hit | None:
    """LD_PRELOAD names a library of the host, and the loader in the container searches the image for this
    library. Usually the image does not have the library, so every program prints "object '…' from LD_PRELOAD
    cannot be preloaded: ignored". If the container has a library at the path in LD_PRELOAD, this library may
    need another C library than the image's, and crash every program.
    """
    case.ask("host.environment")
    return Hit((_cite_variable(case, "LD_PRELOAD"),)) if _is_inherited(case, "LD_PRELOAD") else None


@rule(
    "library-path-forced",
    "A variable of the host replaces the image's search path for libraries",
    severity="warning",
    fix=(
        "unset the variable before you launch the job; set the image's search path when you build the image "
        "(`%environment` or `ENV`)"
    ),
    source="Apptainer user guide, environment: APPTAINERENV_LD_LIBRARY_PATH",
    facts=("host.environment",),
    advice=True,
)
def library_path_forced(case: Case) -> Hit | None:
    """The runtime does not pass the host's LD_LIBRARY_PATH to the container, but a variable such as
    APPTAINERENV_LD_LIBRARY_PATH replaces the image's LD_LIBRARY_PATH. With a replaced LD_LIBRARY_PATH,
    programs load libraries of the host, or do not find libraries of the image.
    """
    case.ask("host.environment")
    names = [name for name in forced_paths(case.host_facts) if _is_inherited(case, name)]
    return Hit(tuple(_cite_variable(case, name) for name in names)) if names else None


@rule(
    "nodes-differ",
    "The compute nodes differ from each other",
    severity="warning",
    fix="request nodes of one kind (`--partition`, `--constraint`), or probe each kind separately",
    source="toolkit probe on all nodes: facts that differ between the nodes",
    facts=("host.compute_nodes",),
    advice=True,
)
def nodes_differ(case: Case) -> Hit | None:
    """A job that gets two kinds of nodes works only if it works on each kind. toolkit predicts launches from
    the facts of only one kind: the kind with the most nodes.
    """
    case.ask("host.compute_nodes")
    lines = tuple(f"host: {name} is {what}" for name, what in sorted(case.host_facts.differs.items()))
    return Hit(lines) if lines else None


@rule(
    "compute-nodes-not-asked",
    "The facts describe the login node; no compute node was probed",
    severity="info",
    fix="probe compute nodes with `toolkit probe --nodes N`, or run `toolkit probe` inside a job",
    source="toolkit probe: srun on the nodes of a partition",
    facts=("host.slurm", "host.compute_nodes"),
    advice=True,
)
def compute_nodes_not_asked(case: Case) -> Hit | None:
    """Login nodes often have no GPU and no InfiniBand. Compute nodes often have other processors and resource
    limits than login nodes.
    """
    case.have("host.slurm")
    if case.host.compute_nodes:
        return None
    case.ask("host.compute_nodes")
    return Hit(case.cite("host.compute_nodes"))
