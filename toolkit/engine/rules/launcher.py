"""Rules about mpirun: the host's mpirun outside the container, and the image's mpirun inside
the container.
"""

import posixpath

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.mismatch import LAUNCHERLESS_FACTS, judge_client, judge_unanswered
from toolkit.engine.planning.proposal import AGENT, NO_OTHER_NODE
from toolkit.engine.rule import MPI_MODES, Hit, LaunchStage, rule
from toolkit.engine.rules.wireup import of_its_daemons
from toolkit.engine.settings import effect
from toolkit.engine.traits import (
    HYDRA,
    PROCESSOR,
    amd_unthreaded,
    brings_orte,
    host_launcher,
    launcher_pair,
    program_of,
)
from toolkit.engine.wireup import PMI, clearing_options, needs_own_daemons, sees_allocation, spoken_interfaces
from toolkit.engine.words import mpi_name, plain
from toolkit.folders import is_below
from toolkit.knowledge import counts
from toolkit.knowledge.mpi import Inside
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.model.prediction import PROGRAMS
from toolkit.program import program_of_name
from toolkit.versions import is_same_version, parse

_WHOLE_PREFIX = {"OPAL_PREFIX", "PMIX_INSTALL_PREFIX"}
"""Variables that the launcher of an Open MPI 4 exports if this Open MPI was moved after its installation."""
_COMPARE_PREFIXES = {"pmix2x", "pmix3x"}
"""Components of Open MPI 3 and 4 that compare the two variables in ``_WHOLE_PREFIX``."""


@rule(
    "host-launcher-leaks",
    "The host's mpirun sets variables that lead the image's MPI to the host's plugins",
    severity="error",
    fix="unset the variables between mpirun and the container: `mpirun … env -u NAME singularity exec …`",
    source="tests/matrix: hybrid-ompi…, compared with hybrid-ompi…-unsetpath and hybrid-ompi…-clean",
    facts=("host.mpis", "image.mpi.plugins", "image.pmix", "image.pmix_plugins"),
    modes=("mpirun-host",),
)
def host_launcher_leaks(case: Case) -> Hit | None:
    """The launcher of the host's Open MPI exports variables that name the folder of the host's plugins. If
    the plugins of the image's Open MPI or PMIx are separate files, the image's library searches that folder
    for them. In the container, the folder contains no matching plugins, so MPI_Init aborts.
    """
    case.ask("host.mpis", "image.mpi.plugins")
    host, mpi, variables = host_launcher(case.host), case.image.mpi, knowledge.mpi().variables
    if host is None or mpi is None or host.implementation != "openmpi" or clearing_options(case):
        return None
    if host.leaks is None:
        seen = "toolkit could not read which variables the host's mpirun sets"
        return Hit(case.cite("host.mpis"), "unknown", seen) if mpi.plugins else None
    left = [name for name in host.leaks if name not in case.plan.unset]
    evidence = case.cite("host.mpis", "image.mpi")
    # MPI_Init opens the plugins first, so this fault occurs before all other faults.
    if mpi.plugins and (hiding := [name for name in left if name in variables.hide_plugins]):
        named = ", ".join(hiding)
        because = f"the host's mpirun sets {named}, so the image's {mpi_name(mpi)} does not find its plugins"
        return Hit(evidence, "init-failure", because, stage=LaunchStage.START)
    for told in (effect(case, name, "", "host") for name in left if name in variables.hide_pmix_plugins):
        if told.outcome != "ok":
            because = f"the host's mpirun sets {told.name}, so the image's PMIx does not find its plugins"
            return Hit(evidence, told.outcome, because, stage=LaunchStage.START)
    return None


@rule(
    "launcher-prefix-half-removed",
    "The launch unsets OPAL_PREFIX but not PMIX_INSTALL_PREFIX, so the image's Open MPI aborts",
    severity="error",
    fix="keep OPAL_PREFIX, or unset PMIX_INSTALL_PREFIX too",
    source=(
        "open-mpi/ompi:opal/mca/pmix/pmix3x/pmix3x_local.c, check_evars, at v4.1.8 (pmix2x at v3.1.6); "
        "tests/matrix: launcher hybrid-ompi4.1.8-orte, compared with hybrid-ompi4.1.8-orte-clean, for images "
        "with Open MPI from wheels"
    ),
    facts=("host.mpis", "image.mpi.version", "image.mpi.components"),
    modes=("mpirun-host",),
)
def launcher_prefix_half_removed(case: Case) -> Hit | None:
    """An Open MPI that contains its own PMIx (components pmix2x, pmix3x) aborts if PMIX_INSTALL_PREFIX is set
    and OPAL_PREFIX is not set. If only OPAL_PREFIX is set, the launch works. Open MPI with an external PMIx
    (ext3x), and Open MPI 5 and later, do not compare PMIX_INSTALL_PREFIX with OPAL_PREFIX.
    """
    case.ask("host.mpis", "image.mpi.version")
    host, mpi = host_launcher(case.host), case.image.mpi
    if host is None or mpi is None or not brings_orte(mpi):
        return None
    taken = _WHOLE_PREFIX & set(case.plan.unset)
    if not _WHOLE_PREFIX.issubset(host.leaks or ()) or taken != {"OPAL_PREFIX"}:
        return None
    if not mpi.components:
        raise Undecided("image.mpi.components")
    if not _COMPARE_PREFIXES & set(mpi.components.get("pmix", ())):
        return None
    return Hit(
        case.cite("host.mpis", "image.mpi"),
        "init-failure",
        ("the launch unsets OPAL_PREFIX but not PMIX_INSTALL_PREFIX"),
    )


@rule(
    "launcher-pmix-pair",
    "PMIx of the host's mpirun and PMIx in the image are incompatible",
    severity="error",
    fix="load another release of the host's Open MPI, or rebuild the image with the host's Open MPI release",
    instead=MPI_MODES,
    source="recipes/knowledge/pmix.toml, [[mpirun]]; tests/matrix: hybrid-ompi",
    facts=("host.mpis", "image.mpi.interfaces", "image.pmix", *LAUNCHERLESS_FACTS),
    modes=("mpirun-host",),
)
def launcher_pmix_pair(case: Case) -> Hit | None:
    """If the releases of mpirun and of the image's MPI library differ, some pairs of releases work, some
    abort, and some hang.

    toolkit predicts the outcome for pairs with recorded launches. toolkit also predicts the outcome if mpirun
    and the image have the same Open MPI release and the same PMIx series.
    """
    case.ask("host.mpis", "image.mpi.interfaces", "image.pmix")
    host, mpi, client = host_launcher(case.host), case.image.mpi, case.image.pmix
    if host is None or mpi is None or client is None or "pmix" not in (mpi.interfaces or ()):
        return None
    if host.implementation != "openmpi":
        return None  # Hydra has no PMIx server
    evidence = case.cite("host.mpis", "image.pmix")
    row = launcher_pair(host, client, case.request, case.plan.unset)
    if row is None and _same_release(host, mpi, client):
        return None  # equal releases work, with and without a container
    if row is None:
        shape = "one node" if case.request.nodes == 1 else "several nodes"
        pair = f"{mpi_name(host)} as launcher with a PMIx {plain(client)} client"
        because = f"toolkit's developers have not tested {pair} on {shape}"
        return Hit(evidence, "unknown", because)
    if row.outcome == "ok":
        return None
    if not row.found:  # if the client finds no PMIx server, the outcome depends on the MPI
        return judge_client(case, mpi, row, "host.mpis", "image.pmix")
    title = f"PMIx of the host's {mpi_name(host)} and PMIx {plain(client)} in the image are incompatible"
    late = LaunchStage.END if row.late else None
    return Hit(evidence, row.outcome, row.because, title, source=row.source, stage=late)


def _same_release(host: HostMpi, mpi: ImageMpi, client: str) -> bool:
    """Return whether mpirun and the image's library are from the same Open MPI release and have the same PMIx
    series, such as 3.2.
    """
    alike = host.implementation == mpi.implementation and is_same_version(
        host.version or "", mpi.version or ""
    )
    return alike and _series(host.pmix) == _series(client) != ()


def _series(pmix: str | None) -> tuple[int, ...]:
    found = parse(pmix or "")
    return found.release[:2] if found else ()


@rule(
    "launcher-of-batch-system",
    "The launcher of the batch system offers an interface that the image's MPI does not support",
    severity="error",
    fix="mount the host's MPI, which supports this launcher, over the image's MPI",
    instead=MPI_MODES,
    source="recipes/knowledge/mpi.toml, [[starter]]",
    facts=("image.mpi", "image.mpi.version"),
    modes=("mpirun-host", "srun-none"),
)
def launcher_of_batch_system(case: Case) -> Hit | None:
    """On some systems, aprun, jsrun, flux or another launcher starts ranks instead of srun, and passes each
    rank its number in a different way than srun. With an MPI that was not built for the launcher, each rank
    starts as a world of size 1 or aborts.
    """
    rows = knowledge.mpi().starters(program_of(case.plan.launcher))
    if not rows or case.request.has_one_rank:
        return None
    case.ask("image.mpi", "image.mpi.version")
    row = next(row for row in rows if row.of(case.image_facts.mpi))
    return Hit(case.cite("image.mpi"), row.outcome, row.because, source=row.source)


@rule(
    "container-launcher-absent",
    "The image has no mpirun",
    severity="error",
    fix="install the launcher (mpirun) of the image's MPI in the image",
    instead=MPI_MODES,
    source="Apptainer user guide, MPI",
    facts=("image.mpi", "image.mpi.launcher", "image.mpirun"),
    modes=("mpirun-container",),
    programs=PROGRAMS,
)
def container_launcher_absent(case: Case) -> Hit | None:
    """The launch starts mpirun inside the container. The image must therefore have an mpirun: on its PATH, or
    at the path that the launch gives.
    """
    without_mpi = {case.state("image.mpi"), case.state("image.mpirun")} == {"absent"}
    if without_mpi and not program_of_name(case.plan.program).BY_MPI:
        return Hit(case.cite("image.mpirun"), "unavailable")
    case.ask("image.mpi", "image.mpi.launcher")
    launcher = case.image.mpi.launcher if case.image.mpi else None
    if not launcher:
        return _launcher_of_another_mpi(case) or Hit(case.cite("image.mpi.launcher"), "unavailable")
    if case.plan.launcher[0] != "mpirun" or case.state("image.mpirun") != "absent":
        return None
    because = f"the image has {launcher}, but no mpirun on its PATH"
    return Hit(case.cite("image.mpirun", "image.mpi.launcher"), "unavailable", because)


def _launcher_of_another_mpi(case: Case) -> Hit | None:
    """Return the finding about an image whose mpirun belongs to Open MPI, although the program needs MPICH or
    Intel MPI. The image has no mpirun of the MPI that the program needs.
    """
    mpi = case.image_facts.mpi
    owner = _starter(case, mpi) if mpi is not None and mpi.implementation in HYDRA else None
    if mpi is None or owner is None or owner.implementation != "openmpi":
        return None
    title = f"The image's mpirun belongs to {mpi_name(owner)}, but the program needs {mpi_name(mpi)}"
    because = f"{mpi_name(owner)} cannot start ranks of {mpi_name(mpi)}"
    evidence = case.cite("image.mpirun", "image.mpi.launcher")
    return Hit(evidence, "init-failure", because, title=title, stage=LaunchStage.LAUNCHER)


@rule(
    "container-launcher-fails",
    "mpirun inside the container cannot start the ranks",
    severity="error",
    fix="use an image with Open MPI 4.1 or 5: with such an image, `toolkit launch` starts Open MPI's "
    "daemons on the other nodes",
    instead=MPI_MODES,
    source="recipes/knowledge/mpi.toml, [[inside]]; tests/matrix: contained-sbatch-*",
    facts=(
        *("image.mpi.launcher", "image.mpi.version", "image.mpi.interfaces", "image.ssh", "image.mpirun"),
        *("host.munge", *PROCESSOR),
    ),
    modes=("mpirun-container",),
)
def container_launcher_fails(case: Case) -> Hit | None:
    """A launcher inside the container has no srun, and no other way to start programs in containers on other
    nodes.

    For Open MPI 4.1 and 5, toolkit's job script provides ``toolkit-agent``. The launcher calls this program,
    which runs the launcher's commands on other nodes with srun.
    """
    case.ask("image.mpi.launcher", "image.mpi.version", "image.mpi.interfaces", "image.ssh")
    mpi = case.image.mpi
    if mpi is None or not mpi.launcher:
        return None
    starter = _starter(case, mpi)
    if starter is None:
        raise Undecided("image.mpirun")
    if starter == _NOBODY:
        because = f"{case.image.mpirun} does not belong to any MPI that toolkit found in the image"
        return Hit(case.cite("image.mpirun", "image.mpi.launcher"), "unknown", because)
    rows = [row for row in knowledge.mpi().inside if _inside_fits(row, case, starter)]
    if rows and rows[0].amd_unthreaded is not None:
        case.ask(*PROCESSOR)
    row = next((r for r in rows if r.amd_unthreaded in {None, amd_unthreaded(case.host_facts)}), None)
    evidence = case.cite("image.mpi", "image.mpi.launcher")
    if row is None:
        return Hit(evidence, "unknown", f"toolkit's developers have not tested {_describe(case, starter)}")
    if row.outcome != "ok":
        # For several nodes, ssh is not enough, because ssh starts programs outside the container.
        fix = "add openssh-client to the image" if row.ssh is False and case.request.nodes == 1 else ""
        # Hydra does not load the image's MPI library, so a failure of Hydra occurs before any fault of this
        # library. Open MPI's launcher loads the image's MPI library.
        apart = starter.implementation in HYDRA
        stage = LaunchStage.LAUNCHER if apart else LaunchStage.START
        return Hit(evidence, row.outcome, row.because, fix=fix, source=row.source, stage=stage)
    # If the image has several MPIs, the program may load an MPI that the launcher does not belong to. The
    # launcher may also be Hydra, although the image's MPICH supports only PMIx.
    orte = starter.implementation == "openmpi"
    if orte and needs_own_daemons(mpi):
        return of_its_daemons(case, starter, mpi, "image.mpirun")
    if not ({"pmix"} if orte else PMI) & spoken_interfaces(case):
        return judge_unanswered(case, mpi, "pmix" if orte else "pmi2", "image.mpirun")
    return _of_another_release(case, starter, mpi) if orte else None


def _describe(case: Case, starter: ImageMpi) -> str:
    """Return the launch in words: mpirun's release, the nodes, and whether mpirun gets Slurm's variables."""
    shape = "one node" if case.request.nodes == 1 else "several nodes"
    given = "with" if sees_allocation(case) else "without"
    name = mpi_name(starter)
    return f"mpirun of {name} in a container on {shape}, {given} the variables of a Slurm allocation"


def _of_another_release(case: Case, starter: ImageMpi, mpi: ImageMpi) -> Hit | None:
    """Return a finding if mpirun and the program use different Open MPIs of the image: mpirun belongs to
    ``starter``, and the program loads ``mpi``. Return ``None`` if both have the same release, or if toolkit
    knows that the two releases work together.
    """
    evidence = case.cite("image.mpi", "image.mpirun", "image.pmix")
    if not _is_same_installation(starter.launcher or "", starter):
        because = f"the release of {starter.launcher} is unknown"
        return Hit(evidence, "unknown", because)
    if starter == mpi or is_same_version(starter.version or "", mpi.version or ""):
        return None
    client = case.image_facts.pmix
    row = launcher_pair(starter, client, case.request, ()) if client else None
    if row is not None and row.outcome != "ok":
        return Hit(evidence, row.outcome, row.because, source=row.source)
    # PRRTE (the launcher of Open MPI 5) starts ranks outside any Slurm step, so each rank of an Open MPI 4
    # starts as a world of size 1.
    if row is None or brings_orte(mpi) != brings_orte(starter):
        pair = f"{mpi_name(mpi)} under mpirun of {mpi_name(starter)} in one image"
        return Hit(evidence, "unknown", f"toolkit's developers have not tested {pair}")
    return None


_NOBODY = ImageMpi(implementation="", version=None, library="", interfaces=None)


def _starter(case: Case, mpi: ImageMpi) -> ImageMpi | None:
    """Return the MPI whose mpirun starts the ranks. The launch gives the path of this mpirun, or uses the
    first mpirun on the image's PATH.

    Return ``_NOBODY`` if this mpirun belongs to no MPI of the image. Return ``None`` if the image has several
    MPIs and toolkit could not read the image's PATH.
    """
    word = case.plan.launcher[0]
    if "/" not in word and case.image_facts.other_mpis and case.state("image.mpirun") == "unknown":
        return None
    path = word if "/" in word else case.image_facts.mpirun
    if path is None:
        return mpi
    using = [m for m in (mpi, *case.image_facts.other_mpis) if m.launcher == path]
    # An MPI without its own mpirun uses the mpirun of another MPI on PATH.
    return next((m for m in using if _is_same_installation(path, m)), using[0] if using else _NOBODY)


def _is_same_installation(launcher: str, mpi: ImageMpi) -> bool:
    """Return whether a launcher and an MPI library are in one installation; ``True`` if the library's path is
    unknown, for example because the image is not built yet.
    """
    return "/" not in mpi.library or is_below(mpi.library, posixpath.dirname(posixpath.dirname(launcher)))


def _inside_fits(row: Inside, case: Case, mpi: ImageMpi) -> bool:
    forked = case.plan.launcher[1:3] == ("-launcher", "fork")
    variables = {**case.image_facts.environment, **case.plan.env}
    return (
        row.of(mpi)
        and counts(row.nodes, case.request.nodes)
        and row.ssh in {None, case.image.ssh is not None}
        and row.allocation in {None, sees_allocation(case)}
        and row.forked in {None, forked}
        and row.agent in {None, AGENT in case.plan.launcher}
        and row.isolated in {None, NO_OTHER_NODE in case.plan.launcher}
        and not (row.without and row.without in variables)
        and (not row.empty or variables.get(row.empty, "unset").strip() == "")
    )
