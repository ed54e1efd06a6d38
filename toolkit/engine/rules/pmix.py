"""Rules about the two ends of PMIx: Slurm's server and the image's client."""

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.proposal import PLAIN_PMIX
from toolkit.engine.rule import MPI_MODES, Hit, LaunchStage, rule
from toolkit.engine.rules.wireup import ALONE, unfound
from toolkit.engine.traits import host_launcher, insists
from toolkit.engine.wireup import offer, waits_for_the_dead
from toolkit.engine.words import plain
from toolkit.knowledge.pmix import Pair, store_of
from toolkit.model.facts import HostMpi
from toolkit.model.prediction import Outcome
from toolkit.versions import within


def _speaks_pmix(case: Case) -> bool:
    mpi = case.image.mpi
    return mpi is not None and "pmix" in (mpi.interfaces or ())


def _pair(server: str, client: str) -> Pair | None:
    rows = knowledge.pmix().srun
    return next((r for r in rows if within(server, r.server) and within(client, r.client)), None)


@rule(
    "pmix-pair-fails",
    "Slurm's PMIx server and the image's PMIx client do not get on",
    severity="error",
    fix="rebuild the image with PMIx 4.2 or 5.0",
    instead=MPI_MODES,
    source="openpmix/openpmix:docs/versions.rst; tests/matrix: srun-pmix",
    facts=("image.mpi.interfaces", "host.slurm.mpi_types", "host.pmix", "image.pmix", *ALONE),
    modes=("srun-pmix", "bind"),
)
def pmix_pair_fails(case: Case) -> Hit | None:
    """Every PMIx from 2.1.1 on connects with every other; older ones only with some."""
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
        because = f"nothing is known of a PMIx {plain(server)} server with a PMIx {plain(client)} client"
        return Hit(evidence, "unknown", because)
    if row.outcome == "ok":
        return None
    return unfound(case, mpi, row, "host.pmix", "image.pmix")


@rule(
    "pmix-components-named",
    "The PMIx server names components that the client in the image does not have",
    severity="error",
    fix="set PMIX_SECURITY_MODE=native and PMIX_GDS_MODULE=hash inside the container (toolkit launch does)",
    source=(
        "openpmix/openpmix#2898, #2927; tests/matrix/truth: srun-pmix of Open MPI 4.1.4 built from its "
        "source; measured: the same under Open MPI 4.1.2 with a PMIx 4.1.2 without munge, where it works"
    ),
    facts=(
        *("image.mpi.interfaces", "image.pmix", "host.pmix", "host.munge", "host.mpis"),
        "image.pmix_components",
    ),
    modes=("srun-pmix", "mpirun-host", "bind"),
)
def pmix_components_named(case: Case) -> Hit | None:
    """The server hands over which security and which store it offers (``munge,native``, ``shmem2,hash``). A
    client 3.2.0 to 3.2.3 ends at the first that it does not have. One that was built without munge has no
    psec/munge, and none has the store of a PMIx 5. Nor does a server name munge that was built without it.
    """
    case.ask("image.mpi.interfaces", "image.pmix")
    found, launcher = offer(case), host_launcher(case.host_facts)
    if not insists(case.image_facts) or found is None or not found.pmix:
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
    because = f"PMIx {plain(case.image.pmix)} ends where {lacking}, which the server names, is not there"
    # Of ranks that share an identity each would find itself alone, if it came so far.
    waits = waits_for_the_dead(case, met=False)
    outcome: Outcome = "hang" if waits else "init-failure"
    because = f"{because}; Intel's Hydra goes on waiting for it" if waits else because
    chance: tuple[Outcome, ...] = ("init-failure",) if waits else ()
    stage = LaunchStage.START if found.shared else None
    return Hit(case.cite("host.pmix", fact), outcome, because, stage=stage, by_chance=chance)


def _without_munge(launcher: HostMpi | None) -> bool:
    """Tell whether a launcher's PMIx is a library whose own libraries were seen, without munge's."""
    if launcher is None or launcher.needs is None:
        return False
    parts = (launcher.components_need or {}).values()
    loaded = {name.partition(".so")[0] for name in (*launcher.needs, *(n for part in parts for n in part))}
    return "libpmix" in loaded and "libmunge" not in loaded


@rule(
    "pmix-client-needs-care",
    "This release of the PMIx client needs care under Slurm",
    severity="warning",
    fix="if ranks hang in MPI_Init, rebuild the image with PMIx 5.0.10 or 4.2.9",
    source="openpmix/openpmix:docs/news; SchedMD/slurm:CHANGELOG",
    facts=("image.mpi.interfaces", "image.pmix", "host.slurm.version"),
    modes=("srun-pmix",),
    advice=True,
)
def pmix_client_needs_care(case: Case) -> Hit | None:
    """Releases 5.0.0, 5.0.1, 5.0.8 and 5.0.9 have known faults between client and server."""
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
