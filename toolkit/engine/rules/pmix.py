"""Rules about PMIx, through which a launcher connects its ranks. Slurm or the host's mpirun contains the PMIx
server. The image contains the PMIx client that its MPI uses.
"""

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.mismatch import LAUNCHERLESS_FACTS, judge_client
from toolkit.engine.planning.variables import PLAIN_PMIX
from toolkit.engine.rule import MPI_MODES, Hit, LaunchStage, rule
from toolkit.engine.traits import host_launcher, needs_named_components
from toolkit.engine.wireup import after_failed_rank, offer
from toolkit.engine.words import plain
from toolkit.knowledge.pmix import Pair, store_of
from toolkit.model.mpifacts import HostMpi
from toolkit.versions import within


def _speaks_pmix(case: Case) -> bool:
    mpi = case.image.mpi
    return mpi is not None and "pmix" in (mpi.interfaces or ())


def _pair(server: str, client: str) -> Pair | None:
    rows = knowledge.pmix().srun
    return next((r for r in rows if within(server, r.server) and within(client, r.client)), None)


@rule(
    "pmix-pair-fails",
    "Slurm's PMIx server and the image's PMIx client are incompatible",
    severity="error",
    fix="rebuild the image with PMIx 4.2 or 5.0",
    instead=MPI_MODES,
    source="openpmix/openpmix:docs/versions.rst; tests/matrix: srun-pmix",
    facts=("image.mpi.interfaces", "host.slurm.mpi_types", "host.pmix", "image.pmix", *LAUNCHERLESS_FACTS),
    modes=("srun-pmix", "bind"),
)
def pmix_pair_fails(case: Case) -> Hit | None:
    """Almost all PMIx releases from 2.1.1 on are compatible with each other. Known exceptions: PMIx 7 clients
    reject servers before PMIx 3.2, and PMIx 3.1 clients cannot read the data of PMIx 4.0 servers. Each
    release before 2.1.1 is compatible with only a few other releases.
    """
    case.ask("image.mpi.interfaces", "host.slurm.mpi_types")
    mpi, found = case.image.mpi, offer(case)
    if mpi is None or not _speaks_pmix(case) or found is None or not found.pmix:
        return None
    case.ask("host.pmix", "image.pmix")
    server, client = case.host.pmix, case.image.pmix
    if server is None or client is None:
        return None
    row = _pair(server, client)
    evidence = case.cite("host.pmix", "image.pmix")
    if row is None:
        because = (
            f"toolkit's developers have not tested a PMIx {plain(server)} server with a PMIx {plain(client)} "
            f"client"
        )
        return Hit(evidence, "unknown", because)
    if row.outcome == "ok":
        return None
    return judge_client(case, mpi, row, "host.pmix", "image.pmix")


@rule(
    "pmix-components-named",
    "The PMIx server names components that the client in the image does not have",
    severity="error",
    fix="set PMIX_SECURITY_MODE=native and PMIX_GDS_MODULE=hash in the container (as `toolkit launch` does)",
    source=(
        "openpmix/openpmix#2898, #2927; tests/matrix/truth: srun-pmix with an image whose Open MPI 4.1.4 "
        "was built from source; measured: the same image works under mpirun of Open MPI 4.1.2, whose PMIx "
        "4.1.2 lacks munge"
    ),
    facts=(
        *("image.mpi.interfaces", "image.pmix", "host.pmix", "host.munge", "host.mpis"),
        "image.pmix_components",
    ),
    modes=("srun-pmix", "mpirun-host", "bind"),
)
def pmix_components_named(case: Case) -> Hit | None:
    """The PMIx server names the components (plugins) that its clients may use: ``munge,native`` for security,
    ``shmem2,hash`` for stored data. A PMIx client of release 3.2.0 to 3.2.3 aborts at the first named
    component that it does not have. For example, a client that was built without munge aborts if the server
    names psec/munge. A server names psec/munge only if the server was built with munge. Every PMIx 3.2 client
    lacks the storage components that servers of PMIx 5.0.2 and later name, such as gds/shmem2.
    """
    case.ask("image.mpi.interfaces", "image.pmix")
    found, launcher = offer(case), host_launcher(case.host_facts)
    if not needs_named_components(case.image_facts) or found is None or not found.pmix:
        return None
    server = case.host_facts.pmix if found.pmix == "slurm" else (launcher.pmix if launcher else None)
    if PLAIN_PMIX.items() <= case.plan.env.items() or not within(
        server or "", knowledge.pmix().insists.server
    ):
        return None
    own, store = case.image_facts.pmix_components, store_of(server or "")
    if store is not None:
        lacking = f"gds/{store}"
    elif "munge" in own.get("psec", ()) or (found.pmix == "launcher" and _without_munge(launcher)):
        return None
    elif case.host.munge:
        lacking = "psec/munge"
    else:
        return None
    fact = "image.pmix_components" if own else "image.pmix"
    client = f"PMIx {plain(case.image.pmix)} in the image"
    because = f"{client} aborts because it lacks the component {lacking}, which the PMIx server names"
    # Under Hydra, all ranks of a node may inherit one PMIx identity. Such ranks usually start as worlds of
    # size 1, but abort in MPI_Init if their PMIx client lacks a component that the server names.
    outcome, because, chance = after_failed_rank(case, "init-failure", because)
    stage = LaunchStage.START if found.shared else None
    return Hit(case.cite("host.pmix", fact), outcome, because, stage=stage, by_chance=chance)


def _without_munge(launcher: HostMpi | None) -> bool:
    """Return whether the libraries that the launcher loads are known to include PMIx but not munge."""
    if launcher is None or launcher.needs is None:
        return False
    parts = (launcher.components_need or {}).values()
    loaded = {name.partition(".so")[0] for name in (*launcher.needs, *(n for part in parts for n in part))}
    return "libpmix" in loaded and "libmunge" not in loaded


@rule(
    "pmix-client-needs-care",
    "The PMIx client in the image has known faults under Slurm",
    severity="warning",
    fix="if ranks hang in MPI_Init, rebuild the image with PMIx 5.0.10 or 4.2.9",
    source="openpmix/openpmix:docs/news; SchedMD/slurm:CHANGELOG",
    facts=("image.mpi.interfaces", "image.pmix", "host.slurm.version"),
    modes=("srun-pmix",),
    advice=True,
)
def pmix_client_needs_care(case: Case) -> Hit | None:
    """PMIx clients 5.0.0 and 5.0.1 use a shared-memory format that other PMIx releases cannot read. Users
    report that PMIx clients 5.0.8 and 5.0.9 hang in MPI_Init under Slurm before 25.11.2.
    """
    case.ask("image.mpi.interfaces", "image.pmix", "host.slurm.version")
    client, slurm = case.image.pmix, case.host.slurm
    if client is None or slurm is None or not _speaks_pmix(case):
        return None
    for row in knowledge.pmix().caution:
        if within(client, row.client) and within(slurm.version or "", row.slurm):
            return Hit(
                case.cite("image.pmix", "host.slurm.version"),
                title=f"{row.title} ({client})",
                source=row.source,
            )
    return None
