"""Rules about containers that do not have the host's /tmp. PMIx and Open MPI keep files in /tmp."""

from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.mismatch import find_mismatches
from toolkit.engine.rule import MPI_MODES, Hit, LaunchStage, rule
from toolkit.engine.traits import brings_orte, brings_prrte, host_launcher, private_tmp
from toolkit.engine.wireup import clearing_options, hides, offer
from toolkit.knowledge.pmix import store_of
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import Outcome

_TMP = "/tmp"  # noqa: S108 - the path that PMIx and Open MPI use


def _tmp_is_bound(case: Case) -> bool:
    runtime = case.host_facts.runtime
    allowed = runtime is None or runtime.settings.get("user bind control") != "no"
    return allowed and any(bind.split(":")[0] == _TMP for bind in case.plan.binds)


@rule(
    "tmp-hidden",
    "The container does not have the host's /tmp, where the PMIx server keeps its shared-memory files",
    severity="error",
    fix="add `--bind /tmp`; or add `--env PMIX_MCA_gds=hash`, so that PMIx uses no shared-memory files",
    source=(
        "openpmix/openpmix:src/mca/gds at v5.0.2 to v6.1.0 (shmem2) and at master (shmem3); "
        "tests/matrix: '--contain', 'job TmpDir=private'"
    ),
    facts=(
        *("image.mpi.interfaces", "image.pmix", "host.slurm.settings", "host.environment"),
        "image.pmix_components",
    ),
    modes=("srun-pmix", "mpirun-host", "bind"),
)
def tmp_hidden(case: Case) -> Hit | None:
    """The PMIx client is the PMIx library that the rank loads; the PMIx server belongs to Slurm or mpirun. A
    client of PMIx 5 or 6 reads the server's shared-memory files below /tmp; clients of PMIx 3 and 4 do not
    read such files. With a server of PMIx 5 or 6, a client of PMIx 7 uses PMIx's component ``hash``, which
    needs no files.
    """
    case.ask("image.mpi.interfaces", "image.pmix")
    if case.plan.env.get("PMIX_MCA_gds") == "hash":
        return None
    hidden = {} if _tmp_is_bound(case) else hides(case, "tmp")
    for bind in case.plan.binds:
        source, _, target = bind.partition(":")
        if target.split(":")[0] == _TMP != source:
            hidden[f"--bind {bind}"] = f"plan: --bind {bind}"
    private = private_tmp(case.host_facts.slurm) if case.host_facts.slurm else None
    if case.mode != "mpirun-host" and private:
        hidden[private.partition(" ")[0]] = f"host: scontrol show config: {private}"
    unread = not hidden and case.mode != "mpirun-host" and case.has_failed("host.slurm.settings")
    if not hidden and not unread:
        return None
    found, launcher = offer(case), host_launcher(case.host_facts)
    if found is None or not found.pmix or clearing_options(case):
        return None
    server = case.host_facts.pmix if found.pmix == "slurm" else (launcher.pmix if launcher else None)
    if not _reads_files(case, server):
        return None
    if unread:
        raise Undecided("host.slurm.settings")
    return Hit(
        (*dict.fromkeys(hidden.values()), *case.cite("image.pmix")),
        "init-failure",
        f"the container does not have the host's /tmp ({next(iter(hidden))}), so the PMIx client does not "
        "find the server's shared-memory files",
    )


def _reads_files(case: Case, server: str | None) -> bool:
    """Return whether the PMIx client has the shared-memory component (framework gds) that the PMIx server
    offers. If the server's release is unknown, assume the client's release.
    """
    own = store_of(case.image_facts.pmix or "")
    offered = store_of(server) if server else own
    return offered is not None and offered in (case.image_facts.pmix_components.get("gds") or (own,))


@rule(
    "tmp-not-mounted",
    "Open MPI keeps its session directory in /tmp, but the container has no writable /tmp",
    severity="error",
    fix="add `--bind /tmp`; or ask the administrators to set 'mount tmp = yes' in apptainer.conf",
    source="tests/matrix: 'apptainer --no-mount tmp', '--no-mount tmp plus PMIX_MCA_gds=hash'",
    facts=("image.mpi", "host.runtime"),
    modes=MPI_MODES,
)
def tmp_not_mounted(case: Case) -> Hit | None:
    """Open MPI creates its session directory below /tmp. If the runtime does not mount the host's /tmp, then
    /tmp is a folder of the read-only image, so Open MPI fails. MPICH needs no session directory.

    With ``PMIX_MCA_gds=hash``, Open MPI 5 does not need /tmp.
    """
    case.ask("image.mpi", "host.runtime")
    mpi, runtime = case.image_facts.mpi, case.host_facts.runtime
    if mpi is None or runtime is None or mpi.implementation != "openmpi" or _tmp_is_bound(case):
        return None
    words = case.plan.container
    said = [f"plan: {' '.join(words)}" for w in words if w == "tmp"]
    if runtime.settings.get("mount tmp") == "no":
        said.append("host: apptainer.conf: mount tmp = no")
    if not said:
        case.ask("host.runtime.settings", failed_only=True)
        return None
    if brings_prrte(mpi) and case.plan.env.get("PMIX_MCA_gds") == "hash":
        return None
    if case.mode == "mpirun-container":
        because = "toolkit's developers have not tested the image's mpirun (Open MPI) without a writable /tmp"
        return Hit(tuple(said), "unknown", because)
    because = "without a writable /tmp, Open MPI cannot create its session directory"
    # ORTE (the launcher of Open MPI 1 to 4) creates the session directory even for a single rank
    # (tests/matrix/truth: Open MPI 1.10.2). A single rank of Open MPI 5.0.10 needs no session directory.
    chance = _by_its_daemon(case, mpi)
    stage = LaunchStage.START if brings_orte(mpi) else None
    return Hit(tuple(said), "init-failure", because, stage=stage, by_chance=chance)


def _by_its_daemon(case: Case, mpi: ImageMpi) -> tuple[Outcome, ...]:
    """Return the outcomes that a launch without /tmp may have instead of ``init-failure``. Under ``srun
    --mpi=pmix``, each rank of Open MPI 2 starts a daemon, which may fail before the rank needs /tmp.
    """
    if case.mode != "srun-pmix":
        return ()
    rows = (row for row in find_mismatches(mpi, "pmix") if row.first and row.munge == case.host_facts.munge)
    return tuple(row.outcome for row in rows)
