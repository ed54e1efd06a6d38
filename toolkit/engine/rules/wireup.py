"""Rules about how ranks find each other: the launcher must offer an interface that the MPI supports."""

from dataclasses import replace

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.mismatch import LAUNCHERLESS_FACTS, find_mismatches, judge_filtered, judge_unanswered
from toolkit.engine.rule import MPI_MODES, TRY_IT, Hit, LaunchStage, rule
from toolkit.engine.traits import (
    HYDRA,
    brings_orte,
    host_launcher,
    is_same_mpi,
    launcher_pair,
    needs_named_components,
)
from toolkit.engine.wireup import (
    ENV_I,
    PMI,
    after_failed_rank,
    clearing_options,
    in_slurm,
    in_step,
    interface_in_use,
    needs_hint,
    needs_own_daemons,
    offer,
    spoken_interfaces,
    step_default,
)
from toolkit.engine.words import family, mpi_name, plain
from toolkit.knowledge.pmix import is_plugin
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import Outcome
from toolkit.versions import is_same_version, within

_REFUSES = "unsupported PMI version"
"""A string in MPI libraries. An MPICH whose library has this string aborts if it detects PMIx, even if PMI
works. MPICH 5.0 has this string, but MPICH 4.3 does not.
"""


@rule(
    "environment-cleaned",
    "The container starts without the variables that give a rank its number",
    severity="error",
    fix=(
        "leave out `--cleanenv`, `--containall` and `env -i`, and "
        "unset only the variables that cause problems"
    ),
    source="Apptainer user guide, environment; tests/matrix: '--cleanenv', fresh-trap-clean-env",
    facts=("host.environment", "image.program", *LAUNCHERLESS_FACTS),
    modes=(*MPI_MODES, "gloo"),
)
def environment_cleaned(case: Case) -> Hit | None:
    """A launcher passes each rank its number, the world size and the address of the launcher's server in
    variables PMIX_*, PMI_* and SLURM_*.

    Without these variables, most MPI libraries start each rank as a world of size 1. Open MPI 3 and 4 abort
    if they find SLURM_* but no PMIX_*. Each rank of Open MPI 2 starts a daemon, and aborts if the image has
    no ssh.
    """
    case.ask("host.environment")
    found = clearing_options(case)
    if case.mode == "mpirun-container":  # the launcher sets its variables inside the container
        found = {name: origin for name, origin in found.items() if name == ENV_I}
    if not found:
        return judge_filtered(case)
    evidence = tuple(dict.fromkeys(found.values()))
    mpi = case.image_facts.mpi
    if case.mode == "gloo":
        because = f"{next(iter(found))} removes SLURM_*, which ranks without MPI need to find each other"
        return Hit(evidence, "init-failure", because)
    because = (
        f"{next(iter(found))} removes PMIX_*, PMI_* and SLURM_*, so each rank starts as a world of size 1"
    )
    if mpi is not None and next(find_mismatches(mpi, "none", step=False), None) is not None:
        said = judge_unanswered(case, mpi, "none", step=False)
        why = because if said.outcome == "singletons" else f"{because}; {said.because}"
        return replace(said, evidence=evidence, because=why)
    return Hit(evidence, "singletons", because)


@rule(
    "image-lacks-pmix",
    "The MPI in the image does not support PMIx",
    severity="error",
    fix="rebuild the image with an MPI that supports PMIx",
    instead=MPI_MODES,
    source="Slurm MPI Users Guide; tests/matrix: srun-pmix",
    facts=("image.mpi.interfaces", *LAUNCHERLESS_FACTS),
    modes=("srun-pmix",),
)
def image_lacks_pmix(case: Case) -> Hit | None:
    """srun offers PMIx, but the MPI library that the program loads has no PMIx client.

    Without a PMIx client, some MPI releases abort in MPI_Init. With other MPI releases, each rank starts as a
    world of size 1, and the job exits with status 0.
    """
    case.ask("image.mpi.interfaces")
    mpi = case.image.mpi
    if mpi is None or "pmix" in spoken_interfaces(case):
        return None
    return judge_unanswered(case, mpi, "pmix", "image.mpi.interfaces")


@rule(
    "image-lacks-pmi2",
    "The MPI in the image supports neither PMI-1 nor PMI-2",
    severity="error",
    fix="rebuild the image with an MPI that supports PMI",
    instead=MPI_MODES,
    source="Slurm MPI Users Guide; tests/matrix: srun-pmi2",
    facts=("image.mpi.interfaces", *LAUNCHERLESS_FACTS),
    modes=("srun-pmi2",),
)
def image_lacks_pmi2(case: Case) -> Hit | None:
    """Slurm's pmi2 plugin offers only PMI-1 and PMI-2. Linux distributions build Open MPI without PMI."""
    case.ask("image.mpi.interfaces")
    mpi = case.image.mpi
    if mpi is None or PMI & spoken_interfaces(case):
        return None
    return judge_unanswered(case, mpi, "pmi2", "image.mpi.interfaces")


@rule(
    "nothing-offered",
    "With --mpi=none, srun offers no interface through which ranks find each other",
    severity="error",
    fix=(
        "give `srun --mpi` an interface that the MPI in the image supports (`srun --mpi=list` prints what "
        "Slurm offers), or start only one rank"
    ),
    instead=MPI_MODES,
    source="srun(1): --mpi=none; tests/matrix: srun-none, srun-cray_shasta",
    facts=("image.mpi", *LAUNCHERLESS_FACTS),
    modes=("srun-none",),
)
def nothing_offered(case: Case) -> Hit | None:
    """``--mpi=none`` is for programs without MPI. With this option, an MPI program finds no PMI server, so
    its ranks cannot find each other.
    """
    case.ask("image.mpi")
    mpi = case.image_facts.mpi
    if mpi is None:
        return None
    return judge_unanswered(case, mpi, "none")


@rule(
    "bind-interface-differs",
    "srun does not offer an interface that the program's MPI supports",
    severity="error",
    fix="mount an MPI of the same family and ABI as the MPI in the image",
    instead=MPI_MODES,
    source="tests/matrix: bind launches in which ranks load the image's MPI; DeiC-HPC/cotainr: examples/LUMI",
    facts=("image.mpi.interfaces", "host.slurm.mpi_default", *LAUNCHERLESS_FACTS),
    modes=("bind",),
)
def bind_interface_differs(case: Case) -> Hit | None:
    """In the launch mode ``bind``, toolkit chooses the launcher's options for the host's MPI, but programs
    may load the image's MPI instead. Without ``--mpi``, srun offers Slurm's default interface. ``srun
    --mpi=cray_shasta`` works only with Cray's MPI.
    """
    case.ask("image.mpi.interfaces")
    mpi, found = case.image.mpi, offer(case)
    if found is None:
        raise Undecided("host.slurm.mpi_default")
    if mpi is None or interface_in_use(case, found):
        return None
    return judge_unanswered(case, mpi, found.first_interface, "image.mpi.interfaces")


@rule(
    "host-launcher-other-family",
    "The host's mpirun and the MPI in the image belong to different families",
    severity="error",
    fix="use an image whose MPI is of the same family as the host's MPI",
    instead=MPI_MODES,
    source="Apptainer user guide, MPI: hybrid model; tests/matrix: hybrid-ompi, hybrid-hydra",
    facts=("host.mpis", "image.mpi.interfaces", "host.slurm.mpi_default", *LAUNCHERLESS_FACTS),
    modes=("mpirun-host",),
)
def host_launcher_other_family(case: Case) -> Hit | None:
    """Open MPI's launcher offers PMIx; Hydra (mpirun of MPICH and Intel MPI) offers PMI. An MPI library of a
    different family does not support the launcher's interface. An MPICH built only for PMIx does not support
    Hydra either. Open MPI 1 is older than PMIx, and does not support the launcher of a newer Open MPI.

    On a Cray EX, PALS's mpiexec offers Cray's PMI, which only a mounted Cray MPICH supports. With the image's
    own MPI, each rank that PALS starts is rank 0 (ALCF user guide for Polaris, containers).

    In a Slurm allocation, Hydra starts its proxies (one process on each node) with srun. If Slurm's default
    for ``--mpi`` is PMIx, srun gives each proxy a PMIx rank number, which all ranks of this proxy inherit.
    With one rank on each node, this number is correct, so an Open MPI in the image works by chance.
    """
    case.ask("host.mpis", "image.mpi.interfaces")
    host, mpi, found = host_launcher(case.host), case.image.mpi, offer(case)
    if host is None or mpi is None:
        return None
    if found is None:
        raise Undecided("host.slurm.mpi_default")
    by = interface_in_use(case, found)
    if not by and needs_own_daemons(mpi) and brings_orte(host):
        return _of_one_family(host, mpi, of_its_daemons(case, host, mpi, "host.mpis"))
    if not by:
        return _of_one_family(host, mpi, _judge_unserved(case, host, mpi, found.first_interface))
    return (
        _of_one_family(host, mpi, _judge_shared_identity(case, mpi))
        if by == "pmix" and found.shared
        else None
    )


def _judge_unserved(case: Case, host: HostMpi, mpi: ImageMpi, interface: str) -> Hit:
    """Return the finding about an MPI that does not support the interface of the host's launcher.

    An Open MPI built for PMI uses Slurm's PMI library, which connects to Hydra and then fails. If a node has
    several ranks, the job may hang instead (tests/matrix/truth: hydra, source-openmpi-4.1.4-pmi2).
    """
    said = judge_unanswered(case, mpi, interface, "host.mpis")
    asks = host.implementation in HYDRA and PMI & set(mpi.interfaces or ())
    if not asks or said.outcome != "init-failure":
        return said
    return replace(said, by_chance=("hang",)) if case.request.ranks_per_node > 1 else said


def _of_one_family(host: HostMpi, mpi: ImageMpi, hit: Hit | None) -> Hit | None:
    """Return ``hit``, with another title and fix if launcher and MPI are of one family (Hydra and a PMIx-only
    MPICH, or two releases of Open MPI). The rule's own title and fix are about two different families.
    """
    pair = {host.implementation, mpi.implementation}
    if hit is None or hit.outcome == "unknown" or not (len(pair) == 1 or pair <= HYDRA):
        return hit
    serves = "PMI" if pair <= HYDRA else "PMIx"
    title = (
        f"The host's {mpi_name(host)} offers {serves}; {mpi_name(mpi)} in the image does not support {serves}"
    )
    fix = (
        "use an image whose MPICH was built for PMI"
        if pair <= HYDRA
        else "use an image with Open MPI 4.1 or 5"
    )
    return replace(hit, title=hit.title or title, fix=fix)


def of_its_daemons(case: Case, launcher: HostMpi | ImageMpi, mpi: ImageMpi, name: str) -> Hit | None:
    """Return the finding about an Open MPI 1, which works only under an mpirun of the same release; ``None``
    if ``launcher`` has this release. The finding cites ``name``, the fact about the launcher.
    """
    evidence = case.cite(name, "image.mpi")
    row = next(
        (r for r in knowledge.mpi().daemons if r.of(mpi) and within(launcher.version or "", r.launcher)),
        None,
    )
    if row is not None:
        because = (
            f"{mpi_name(mpi)} expects daemons of the same release, but the daemons belong to "
            f"{mpi_name(launcher)}"
        )
        return Hit(evidence, row.outcome, f"{because}, and {row.because}", source=row.source)
    alike = launcher.implementation == mpi.implementation
    if launcher == mpi or (alike and is_same_version(launcher.version or "", mpi.version or "-")):
        return None
    because = f"toolkit's developers have not tested {mpi_name(mpi)} under daemons of {mpi_name(launcher)}"
    return Hit(evidence, "unknown", because)


def _judge_shared_identity(case: Case, mpi: ImageMpi) -> Hit:
    evidence = case.cite("host.mpis", "host.slurm.mpi_default", "image.mpi")
    why = f"{mpi_name(mpi)} uses the PMIx identity that srun gave to the proxy of Hydra (the host's mpirun)"
    if case.request.ranks_per_node == 1:
        because = f"{why}; with one rank on each node, this identity is right"
        return Hit(evidence, because=because, severity="warning", title=because)
    if case.request.nodes == 1:
        # srun starts Hydra's proxy as the only process of a step, and all ranks inherit the proxy's PMIx
        # identity. A world with this identity has size 1.
        because = (
            f"{why}; the proxy is the only process of its step, so each rank starts as a world of size 1"
        )
        return Hit(evidence, "singletons", because)
    client = case.image_facts.pmix or ""
    row = next((r for r in knowledge.pmix().shared if within(client, r.client)), None)
    if row is None:
        return Hit(
            evidence,
            "unknown",
            f"{why}, so all ranks of a node share one identity; toolkit does not know how the launch fails",
        )
    because = f"{why}, so all ranks of a node share one identity"
    stage = LaunchStage.END if row.late else None
    return Hit(evidence, row.outcome, because, source=row.source, stage=stage, by_chance=row.by_chance)


@rule(
    "pmix-refused",
    "The MPI in the image aborts because the launcher offers PMIx in addition to PMI",
    severity="error",
    fix="hide Slurm's PMIx from mpirun's proxies: `SLURM_MPI_TYPE=none mpirun …`",
    instead=MPI_MODES,
    source="pmodels/mpich:src/util/mpir_pmi.c; tests/matrix: MPICH 5.0.2 with SLURM_MPI_TYPE=none",
    facts=("host.mpis", "image.mpi.interfaces", "host.slurm.mpi_default"),
    modes=("mpirun-host",),
)
def pmix_refused(case: Case) -> Hit | None:
    """MPICH 5 first looks for PMIX_RANK. If the variable is set but MPICH was built without PMIx, MPICH
    aborts, even if PMI works. An MPICH built with PMIx aborts too, because it cannot choose between PMI and
    PMIx.
    """
    case.ask("host.mpis", "image.mpi.interfaces")
    host, mpi = host_launcher(case.host), case.image.mpi
    if host is None or mpi is None or host.implementation not in HYDRA:
        return None
    row = next(find_mismatches(mpi, "pmix"), None)
    if row is None or _REFUSES not in mpi.markers:
        return None
    default = step_default(case)
    if default is None:
        raise Undecided("host.slurm.mpi_default")
    if not is_plugin(default):
        return None
    outcome, because, chance = after_failed_rank(case, row.outcome, row.because)
    evidence = case.cite("host.slurm.mpi_default", "image.mpi")
    stage = LaunchStage.START if outcome == "hang" else None
    return Hit(evidence, outcome, because, source=row.source, stage=stage, by_chance=chance)


@rule(
    "rank-outside-step",
    "Ranks that run on the same node as the host's mpirun start as worlds of size 1",
    severity="error",
    fix="set SLURM_STEP_ID=0 inside the container (as `toolkit launch` does)",
    source=("open-mpi/ompi:orte/mca/ess at v4.1; tests/matrix: hybrid-ompi5.0.7deb-*-noSLURMenv, -noslurm"),
    facts=("image.mpi.version", "image.mpi.interfaces", "host.slurm.version"),
    modes=("mpirun-host", "srun-pmix"),
)
def rank_outside_step(case: Case) -> Hit | None:
    """If the launcher is not Open MPI 4's own mpirun, Open MPI 4 looks for a Slurm step before it connects to
    PMIx. A rank that finds no step starts as a world of size 1.

    On the node of mpirun, PRRTE (the launcher of Open MPI 5) starts the ranks outside any Slurm step. Slurm
    before 26.05 does not set SLURM_STEP_ID in a batch script. Without SLURM_STEP_ID, the ranks on this node
    start as worlds of size 1. Ranks on other nodes wait forever for the ranks on this node, or fail.
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
    because = f"the ranks on the same node as mpirun have no {variable}"
    taken = set(case.plan.unset) & {variable, "SLURM_STEPID"}
    all_outside = case.request.nodes == 1 or taken or not in_slurm(case)
    refused = _refuses_other_nodes(case)
    outcome: Outcome = (
        "singletons" if all_outside or (refused and needs_named_components(case.image)) else "hang"
    )
    # PRRTE passes names of plugins (components) to the image's PMIx. Ranks on other nodes abort if their PMIx
    # needs such a plugin but lacks it (measured under Open MPI 5.0.9: PMIx 3.2.3 of tests/matrix/truth). If
    # their PMIx needs no such plugin but PRRTE does not support it, they hang (PMIx 3.2.5 of Open MPI 4.1.8).
    stage = LaunchStage.START if refused and outcome == "hang" else None
    return Hit(case.cite("host.mpis", "image.mpi"), outcome, because, stage=stage)


def _refuses_other_nodes(case: Case) -> bool:
    """Return whether PRRTE does not support the image's PMIx client, so that ranks on other nodes fail."""
    host, client = host_launcher(case.host_facts), case.image_facts.pmix
    pair = launcher_pair(host, client, case.request, case.plan.unset) if host and client else None
    return pair is not None and pair.outcome == "init-failure"


@rule(
    "host-launcher-not-known",
    "toolkit cannot predict launches with the host's launcher",
    severity="warning",
    fix=TRY_IT,
    instead=MPI_MODES,
    source="tests/matrix covers the launchers of Open MPI, MPICH and Intel MPI",
    facts=("host.mpis",),
    modes=("mpirun-host",),
)
def host_launcher_not_known(case: Case) -> Hit | None:
    """toolkit predicts launches with Open MPI's mpirun, Hydra and PALS, but not with jsrun and other
    launchers.
    """
    host = host_launcher(case.host)
    if host is None or host.lacks or host.implementation in {"openmpi", "cray", *HYDRA}:
        return None
    if case.image_facts.mpi and is_same_mpi(host_launcher(case.host_facts), case.image_facts.mpi):
        return None
    return Hit(
        case.cite("host.mpis"),
        "unknown",
        f"toolkit's developers have not tested the launcher of {family(host.implementation)} "
        f"{plain(host.version)}",
    )
