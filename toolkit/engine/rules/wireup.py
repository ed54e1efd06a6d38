"""Rules about how ranks find each other: what the launcher offers, and what the MPI in the image speaks."""

from collections.abc import Iterator
from dataclasses import replace

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.rule import MPI_MODES, TRY_IT, Hit, LaunchStage, rule
from toolkit.engine.settings import ends_first
from toolkit.engine.traits import (
    HYDRA,
    PROCESSOR,
    amd_unthreaded,
    brings_orte,
    host_launcher,
    insists,
    launcher_pair,
)
from toolkit.engine.wireup import (
    PMI,
    allocation_seen,
    cleaned,
    in_slurm,
    in_step,
    knows_orte_alone,
    needs_hint,
    offer,
    served,
    spoken,
    step_default,
    waits_for_the_dead,
)
from toolkit.engine.words import family, mpi_name, plain
from toolkit.knowledge.mpi import Mismatch
from toolkit.knowledge.pmix import Pair, is_plugin
from toolkit.model.facts import HostMpi, ImageMpi
from toolkit.model.prediction import Outcome
from toolkit.versions import same, within

_REFUSES = "unsupported PMI version"
"""In the library of an MPICH that ends where it sees PMIx, though PMI is there too: 5.0, not 4.3."""


ALONE = ("image.ssh", "host.munge", "image.mpirun", *PROCESSOR)
"""Facts that decide what becomes of some libraries that find no launcher."""

_SECURITY = "PMIX_SECURITY_MODE"
"""What a PMIx server names for proof of identity, in the order in which clients shall try it."""


def mismatch(mpi: ImageMpi, sees: str, *, step: bool = True) -> Iterator[Mismatch]:
    """Yield what is known of a library that is offered ``sees`` and cannot use it; the first counts."""
    for row in knowledge.mpi().mismatch:
        told = row.sees in {"", sees} and row.step in {None, step}
        built = row.speaks in {"", *(mpi.interfaces or ())}
        if row.of(mpi) and told and built and (not row.marker or row.marker in mpi.markers):
            yield row


def unanswered(case: Case, mpi: ImageMpi, sees: str, *names: str, step: bool | None = None) -> Hit:
    """Judge an MPI that is offered an interface which it does not speak, or none.

    ``step`` says whether it sees a step of Slurm, where the launch alone does not tell.
    """
    asked: tuple[str, ...] = names
    there = {
        "image.ssh": case.image_facts.ssh is not None,
        "image.mpirun": case.image_facts.mpirun is not None,
        "host.munge": case.host_facts.munge,
        "host.cpu_threads": amd_unthreaded(case.host_facts),
    }
    named = _munge_named(case)
    told = {} if named is None else {"host.munge": named}
    for row in mismatch(mpi, sees, step=in_step(case) if step is None else step):
        wanted = {
            "image.ssh": row.ssh,
            "image.mpirun": row.mpiexec,
            "host.munge": row.munge,
            "host.cpu_threads": row.amd_unthreaded,
        }
        decides = {name: value for name, value in wanted.items() if value is not None}
        if row.allocation not in {None, allocation_seen(case)}:
            continue
        sooner = row.first and ends_first(case)
        if sooner or any(decides.get(name, value) != value for name, value in told.items()):
            continue
        decides = {name: value for name, value in decides.items() if name not in told}
        asked = (*asked, *(name for name in decides if name not in asked))
        facts = (PROCESSOR if name in PROCESSOR else (name,) for name in decides)
        case.ask(*(fact for of in facts for fact in of))
        if all(there[name] == value for name, value in decides.items()):
            evidence = case.cite("image.mpi", *asked)
            return Hit(
                evidence,
                row.outcome,
                row.because,
                source=row.source,
                stage=LaunchStage.START if row.first else None,
                by_chance=row.by_chance,
            )
    because = f"what {mpi_name(mpi)} does without a launcher that it understands has not been measured"
    return Hit(case.cite("image.mpi", *asked), "unknown", because)


def _munge_named(case: Case) -> bool | None:
    """Tell whether ranks are told to prove themselves by munge; ``None`` where that is the server's word."""
    if cleaned(case):
        return False
    named = case.plan.env.get(_SECURITY)
    return None if named is None else "munge" in named.split(",")


def unfound(case: Case, mpi: ImageMpi, pair: Pair, *names: str) -> Hit:
    """Judge an MPI whose PMIx client does not get on with the server that it is offered, or not find it."""
    if pair.found or next(mismatch(mpi, "pmix"), None) is None:
        return Hit(case.cite(*names), pair.outcome, pair.because, source=pair.source)
    said = unanswered(case, mpi, "pmix", *names)
    return replace(said, because=f"{pair.because}; {said.because}")


@rule(
    "environment-cleaned",
    "The container is started without the variables that tell a rank who it is",
    severity="error",
    fix="leave --cleanenv and --containall out; unset single variables instead",
    source="Apptainer user guide, environment; tests/matrix: '--cleanenv', '--containall'",
    facts=("host.environment", *ALONE),
    modes=("srun-pmix", "srun-pmi2", "srun-none", "mpirun-host", "bind", "gloo"),
)
def environment_cleaned(case: Case) -> Hit | None:
    """Launchers hand rank, size and the address of their server over in PMIX_*, PMI_*, SLURM_*.

    Every MPI then believes to be alone: without Slurm's variables not even Open MPI 4 can tell. What it does
    there is its own affair: Open MPI 2 starts a daemon, and needs ssh for it.
    """
    case.ask("host.environment")
    found = cleaned(case)
    if not found:
        return None
    evidence = tuple(dict.fromkeys(found.values()))
    mpi = case.image_facts.mpi
    if case.mode == "gloo":
        because = f"{next(iter(found))} strips SLURM_*, by which ranks find each other without MPI"
        return Hit(evidence, "init-failure", because)
    because = f"{next(iter(found))} strips PMIX_*, PMI_* and SLURM_*, so every rank believes to be alone"
    if mpi is not None and next(mismatch(mpi, "none", step=False), None) is not None:
        said = unanswered(case, mpi, "none", step=False)
        why = because if said.outcome == "singletons" else f"{because}; {said.because}"
        return replace(said, evidence=evidence, because=why)
    return Hit(evidence, "singletons", because)


@rule(
    "image-lacks-pmix",
    "The MPI in the image does not speak PMIx",
    severity="error",
    fix="rebuild the image with an MPI that speaks PMIx",
    instead=MPI_MODES,
    source="Slurm MPI Users Guide; tests/matrix: srun-pmix",
    facts=("image.mpi.interfaces", *ALONE),
    modes=("srun-pmix",),
)
def image_lacks_pmix(case: Case) -> Hit | None:
    """srun offers PMIx, and the library that the program loads has no PMIx client.

    Depending on implementation and version the ranks abort in MPI_Init, or each believes to be alone
    and the job ends with exit status 0.
    """
    case.ask("image.mpi.interfaces")
    mpi = case.image.mpi
    if mpi is None or "pmix" in spoken(case):
        return None
    return unanswered(case, mpi, "pmix", "image.mpi.interfaces")


@rule(
    "image-lacks-pmi2",
    "The MPI in the image speaks neither PMI-1 nor PMI-2",
    severity="error",
    fix="rebuild the image with an MPI that speaks PMI",
    instead=MPI_MODES,
    source="Slurm MPI Users Guide; tests/matrix: srun-pmi2",
    facts=("image.mpi.interfaces", *ALONE),
    modes=("srun-pmi2",),
)
def image_lacks_pmi2(case: Case) -> Hit | None:
    """Slurm's pmi2 plugin answers PMI-1 and PMI-2 only. Open MPI as it is packaged has no client for them."""
    case.ask("image.mpi.interfaces")
    mpi = case.image.mpi
    if mpi is None or PMI & spoken(case):
        return None
    return unanswered(case, mpi, "pmi2", "image.mpi.interfaces")


@rule(
    "nothing-offered",
    "srun offers no interface by which ranks could find each other",
    severity="error",
    fix="start one rank, as several need an interface that their MPI speaks (srun --mpi=list names them)",
    instead=MPI_MODES,
    source="srun(1): --mpi=none; tests/matrix: srun-none, srun-cray_shasta",
    facts=("image.mpi", *ALONE),
    modes=("srun-none",),
)
def nothing_offered(case: Case) -> Hit | None:
    """With ``--mpi=none`` srun starts programs that are no MPI; an MPI finds nobody to ask."""
    case.ask("image.mpi")
    mpi = case.image_facts.mpi
    if mpi is None:
        return None
    return unanswered(case, mpi, "none")


@rule(
    "bind-interface-differs",
    "srun does not offer what the MPI that is loaded speaks",
    severity="error",
    fix="mount an MPI of the same family and ABI as the image's",
    instead=MPI_MODES,
    source="tests/matrix: set bind, cells where the image's own MPI is loaded",
    facts=("image.mpi.interfaces", *ALONE),
    modes=("bind",),
)
def bind_interface_differs(case: Case) -> Hit | None:
    """The launcher was chosen for the host's MPI; another one may be loaded in its place."""
    case.ask("image.mpi.interfaces")
    mpi, found = case.image.mpi, offer(case)
    if mpi is None or found is None or served(case, found):
        return None
    return unanswered(case, mpi, found.sees, "image.mpi.interfaces")


@rule(
    "host-launcher-other-family",
    "The host's mpirun and the MPI in the image are of different families",
    severity="error",
    fix="use an image with an MPI of the family that the host has",
    instead=MPI_MODES,
    source="Apptainer user guide, MPI: hybrid model; tests/matrix: hybrid-ompi, hybrid-hydra",
    facts=("host.mpis", "image.mpi.interfaces", "host.slurm.mpi_default", *ALONE),
    modes=("mpirun-host",),
)
def host_launcher_other_family(case: Case) -> Hit | None:
    """Open MPI's launcher speaks PMIx, Hydra speaks PMI; neither is understood by the other's library, nor by
    an MPICH that was built for PMIx alone, or an Open MPI 1, which is older than PMIx.

    In an allocation Hydra starts its proxies by srun, and where Slurm's default is PMIx they inherit the
    PMIx identity of one process a node: with one rank a node an Open MPI finds itself by accident.
    """
    case.ask("host.mpis", "image.mpi.interfaces")
    host, mpi, found = host_launcher(case.host), case.image.mpi, offer(case)
    if host is None or mpi is None:
        return None
    if found is None:
        raise Undecided("host.slurm.mpi_default")
    by = served(case, found)
    if not by and knows_orte_alone(mpi) and brings_orte(host):
        return _of_one_family(host, mpi, of_its_daemons(case, host, mpi, "host.mpis"))
    if not by:
        return _of_one_family(host, mpi, _unserved(case, host, mpi, found.sees))
    return _of_one_family(host, mpi, _shared(case, mpi)) if by == "pmix" and found.shared else None


def _unserved(case: Case, host: HostMpi, mpi: ImageMpi, sees: str) -> Hit:
    """Judge an MPI that does not understand the host's launcher.

    An Open MPI that was built for PMI asks Slurm's own library, which opens a connection to Hydra before it
    gives up: of several on a node one may be left waiting (tests/matrix/truth:
    hydra, source-openmpi-4.1.4-pmi2).
    """
    said = unanswered(case, mpi, sees, "host.mpis")
    asks = host.implementation in HYDRA and PMI & set(mpi.interfaces or ())
    if not asks or said.outcome != "init-failure":
        return said
    return replace(said, by_chance=("hang",)) if case.request.ranks_per_node > 1 else said


def _of_one_family(host: HostMpi, mpi: ImageMpi, said: Hit | None) -> Hit | None:
    """Say what keeps two of one family apart: an MPICH that was built for PMIx alone, an Open MPI 1."""
    pair = {host.implementation, mpi.implementation}
    if said is None or said.outcome == "unknown" or not (len(pair) == 1 or pair <= HYDRA):
        return said
    serves = "PMI" if pair <= HYDRA else "PMIx"
    title = f"The host's {mpi_name(host)} serves {serves}, which {mpi_name(mpi)} in the image does not speak"
    fix = (
        "use an image whose MPICH was built for PMI"
        if pair <= HYDRA
        else "use an image with Open MPI 4.1 or 5"
    )
    return replace(said, title=said.title or title, fix=fix)


def of_its_daemons(case: Case, launcher: HostMpi | ImageMpi, mpi: ImageMpi, name: str) -> Hit | None:
    """Judge an Open MPI 1, which takes whatever ORTE starts it for that of its own release.

    ``None`` under a launcher of its own release.
    """
    evidence = case.cite(name, "image.mpi")
    row = next(
        (r for r in knowledge.mpi().daemons if r.of(mpi) and within(launcher.version or "", r.launcher)),
        None,
    )
    if row is not None:
        because = f"{mpi_name(mpi)} takes the daemons of {mpi_name(launcher)} for those of its own release"
        return Hit(evidence, row.outcome, f"{because}, and {row.because}", source=row.source)
    alike = launcher.implementation == mpi.implementation
    if launcher == mpi or (alike and same(launcher.version or "", mpi.version or "-")):
        return None
    because = f"{mpi_name(mpi)} under the daemons of {mpi_name(launcher)} has not been measured"
    return Hit(evidence, "unknown", because)


def _shared(case: Case, mpi: ImageMpi) -> Hit:
    evidence = case.cite("host.mpis", "host.slurm.mpi_default", "image.mpi")
    why = f"{mpi_name(mpi)} takes the PMIx identity that Hydra's proxy was given by srun"
    if case.request.ranks_per_node == 1:
        because = f"{why}; with one rank on each node that is right by accident"
        return Hit(evidence, because=because, severity="warning", title=because)
    if case.request.nodes == 1:
        # The step that the identity is of has one process: that is the world of each that takes it.
        return Hit(evidence, "singletons", f"{why}, of a step of one: each takes itself for the only rank")
    client = case.image_facts.pmix or ""
    row = next((r for r in knowledge.pmix().shared if within(client, r.client)), None)
    if row is None:
        return Hit(evidence, "unknown", f"{why}, which all ranks of a node share; how it fails is not known")
    because = f"{why}, which all ranks of a node share"
    stage = LaunchStage.END if row.late else None
    return Hit(evidence, row.outcome, because, source=row.source, stage=stage, by_chance=row.by_chance)


@rule(
    "pmix-refused",
    "The MPI in the image refuses a launcher that offers PMIx beside PMI",
    severity="error",
    fix="mpirun's proxies must not inherit PMIx: SLURM_MPI_TYPE=none mpirun …",
    instead=MPI_MODES,
    source="pmodels/mpich:src/util/mpir_pmi.c; tests/matrix: hybrid-hydra against -mpinone of MPICH 5.0.2",
    facts=("host.mpis", "image.mpi.interfaces", "host.slurm.mpi_default"),
    modes=("mpirun-host",),
)
def pmix_refused(case: Case) -> Hit | None:
    """MPICH 5 looks for PMIX_RANK first and ends when it finds one that it cannot use, PMI or not. One that
    was built with PMIx ends as well: of the two it does not know which is meant.
    """
    case.ask("host.mpis", "image.mpi.interfaces")
    host, mpi = host_launcher(case.host), case.image.mpi
    if host is None or mpi is None or host.implementation not in HYDRA:
        return None
    row = next(mismatch(mpi, "pmix"), None)
    if row is None or _REFUSES not in mpi.markers:
        return None
    default = step_default(case)
    if default is None:
        raise Undecided("host.slurm.mpi_default")
    if not is_plugin(default):
        return None
    waits = waits_for_the_dead(case, met=False)
    outcome: Outcome = "hang" if waits else row.outcome
    because = f"{row.because}; Intel's Hydra goes on waiting for it" if waits else row.because
    evidence = case.cite("host.slurm.mpi_default", "image.mpi")
    chance: tuple[Outcome, ...] = (row.outcome,) if waits else ()
    stage = LaunchStage.START if waits else None
    return Hit(evidence, outcome, because, source=row.source, stage=stage, by_chance=chance)


@rule(
    "rank-outside-step",
    "Ranks beside the host's mpirun take themselves for singletons",
    severity="error",
    fix="set SLURM_STEP_ID=0 inside the container (toolkit launch does)",
    source=("open-mpi/ompi:orte/mca/ess at v4.1; tests/matrix: hybrid-ompi5.0.7deb-*-noSLURMenv, -noslurm"),
    facts=("image.mpi.version", "image.mpi.interfaces", "host.slurm.version"),
    modes=("mpirun-host", "srun-pmix"),
)
def rank_outside_step(case: Case) -> Hit | None:
    """An Open MPI 4 that was not started by its own launcher looks for a step of Slurm before it asks PMIx.

    PRRTE starts the ranks of its own node outside any step, and before 26.05 Slurm does not call a batch
    script one; without the variable they take themselves for singletons, and ranks on other nodes wait for
    them for ever, or end on their own account.
    """
    case.ask("image.mpi.version", "image.mpi.interfaces")
    mpi, found = case.image.mpi, offer(case)
    if mpi is None or found is None or not found.pmix or "pmix" not in (mpi.interfaces or ()):
        return None
    if not needs_hint(case) or in_step(case):
        return None
    if in_slurm(case) and case.state("host.slurm.version") == "unknown":
        raise Undecided("host.slurm.version")
    variable = knowledge.mpi().outside_step.variable
    because = f"the ranks beside mpirun see no {variable}"
    taken = set(case.plan.unset) & {variable, "SLURM_STEPID"}
    all_outside = case.request.nodes == 1 or taken or not in_slurm(case)
    refused = _others_are_refused(case)
    outcome: Outcome = "singletons" if all_outside or (refused and insists(case.image)) else "hang"
    # A client that ends for want of a component ends at once; another that PRRTE does not serve waits for
    # ever (measured: PMIx 3.2.3 of tests/matrix/truth against 3.2.5 of Open MPI 4.1.8, under Open MPI 5.0.9).
    stage = LaunchStage.START if refused and outcome == "hang" else None
    return Hit(case.cite("host.mpis", "image.mpi"), outcome, because, stage=stage)


def _others_are_refused(case: Case) -> bool:
    """Tell whether ranks that a PRRTE on another node starts cannot use what it offers."""
    host, client = host_launcher(case.host_facts), case.image_facts.pmix
    pair = launcher_pair(host, client, case.request, case.plan.unset) if host and client else None
    return pair is not None and pair.outcome == "init-failure"


@rule(
    "host-launcher-not-known",
    "The host's launcher is not one that is known here",
    severity="warning",
    fix=TRY_IT,
    instead=MPI_MODES,
    source="tests/matrix covers the launchers of Open MPI, MPICH and Intel MPI",
    facts=("host.mpis",),
    modes=("mpirun-host",),
)
def host_launcher_not_known(case: Case) -> Hit | None:
    """Launchers of Open MPI and Hydra are predicted; Cray's aprun, IBM's jsrun and others are not."""
    host = host_launcher(case.host)
    if host is None or host.lacks or host.implementation in {"openmpi", *HYDRA}:
        return None
    return Hit(
        case.cite("host.mpis"),
        "unknown",
        f"{family(host.implementation)} {plain(host.version)}'s launcher is not predicted",
    )
