"""Rules about the image: the files and settings that its MPI needs, and its software list (stack.json)."""

import posixpath
import re

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.host_mpi import mounted_first
from toolkit.engine.rule import MPI_MODES, TRY_IT, Hit, LaunchStage, rule
from toolkit.engine.settings_in_force import setting_value
from toolkit.engine.traits import (
    HYDRA,
    OPAL_FOLDERS,
    bind_target,
    host_launcher,
    is_same_mpi,
    mounted_mpi,
)
from toolkit.engine.wireup import after_failed_rank, clearing_options, interface_in_use, offer
from toolkit.engine.words import family, mpi_name
from toolkit.knowledge import counts
from toolkit.knowledge.mpi import NETMOD, Defect, netmods
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import Outcome
from toolkit.versions import within

MPI4PY = re.compile(r".*/mpi4py/MPI\.(?!cpython|abi3|so\Z)\w+\.")
"""A pattern for the path of mpi4py's compiled module for one MPI ABI (binary interface). If mpi4py has
several such modules, mpi4py loads an MPI library and selects the module for this library (_mpiabi.py).
"""
_RANK_VARIABLES = frozenset(("PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT", "PMI_ID"))
_PROVIDER_PATH = "FI_PROVIDER_PATH"
_ADD_PROVIDER = (
    "install the libraries that libfabric's providers need, or a libfabric with the provider tcp (Debian: "
    "libfabric1)"
)
_OWN_LIBFABRIC = ("opt/mpi/libfabric/lib", "libfabric/lib", "libfabric", "lib/libfabric", "lib")
"""Folders below Intel MPI's prefix that may contain Intel's libfabric. Intel's mpirun searches the first two
folders (env/vars.sh); mpi4py searches all these folders.
"""
_TRANSPORTS = {"btl", "mtl"}
"""Open MPI's frameworks for sending messages. Every working Open MPI has components of ``btl``."""


@rule(
    "image-lacks-mpi",
    "The image has no MPI library",
    severity="error",
    fix="build an image with MPI: `toolkit image build`",
    instead=("bind",),
    source="Apptainer user guide, MPI",
    facts=("image.mpi", "image.mpirun", "image.programs_need"),
    modes=MPI_MODES,
)
def image_lacks_mpi(case: Case) -> Hit | None:
    """toolkit did not find libmpi in the folders that the image's loader searches. The launch mode bind works
    only if the host's MPI library has the file name that the programs need.
    """
    if case.image.mpi is not None:
        return None
    if case.request.has_one_rank and case.mode != "mpirun-container":
        fix = "if the program does not call MPI, change nothing"
        return Hit(case.cite("image.mpi"), severity="warning", fix=fix, instead=())
    provider = mounted_mpi(case.host_facts, case.original_facts) if case.mode == "bind" else None
    if case.mode == "bind" and provider is None:
        return None  # the rule bind-nothing-to-mount checks whether the host has an MPI to mount
    if case.mode == "mpirun-container" and case.state("image.mpirun") == "absent":
        because = "the image has neither an MPI library nor an mpirun"
        return Hit(case.cite("image.mpi"), "unavailable", because)
    needed = ", ".join(sorted({*case.image_facts.programs_need.values()})) or "libmpi"
    because = f"a program that needs {needed} does not start in this image"
    if provider and provider.soname:
        because = f"{because} with the host's {provider.soname}"
    outcome, because, chance = after_failed_rank(case, "loader-failure", because)
    return Hit(case.cite("image.mpi"), outcome, because, by_chance=chance)


@rule(
    "mpi-moved",
    "The Open MPI in the image was moved and does not find its plugins",
    severity="error",
    fix="set Open MPI's folder, as `toolkit launch` does: `--env OPAL_PREFIX=DIR`",
    source="open-mpi/ompi:opal/mca/installdirs, opal/runtime/opal_init.c; measured with Open MPI 4.1.6",
    facts=("image.mpi",),
    modes=tuple(mode for mode in MPI_MODES if mode != "bind"),
)
def mpi_moved(case: Case) -> Hit | None:
    """Open MPI looks for its plugins below OPAL_PREFIX or, if this variable is not set, below the prefix of
    its build. A moved Open MPI, such as HPC-X copied from another image, finds no plugins. Without plugins,
    MPI_Init aborts before Open MPI looks for a launcher (opal_shmem_base_select failed).
    """
    mpi = case.image.mpi
    if mpi is None or mpi.built_for is None:
        return None
    said = {word.partition("=")[0] for word in (*case.plan.env, *case.plan.container)}
    if said & OPAL_FOLDERS or any(setting_value(case, name) is not None for name in OPAL_FOLDERS):
        return None
    because = f"{mpi_name(mpi)} looks for its plugins in {mpi.built_for}, which does not contain them"
    words = " ".join(f"--env {name}={value}" for name, value in mpi.led_by.items())
    fix = f"set Open MPI's folder, as `toolkit launch` does: `{words}`"
    return Hit(
        case.cite("image.mpi", "image.mpi.built_for"),
        "init-failure",
        because,
        fix=fix,
        stage=LaunchStage.START,
    )


@rule(
    "mpi-lacks-plugins",
    "The Open MPI in the image has no plugins",
    severity="error",
    fix=(
        "install Open MPI in the image as a package; or, if you copy Open MPI, also copy its plugin "
        "folder lib/openmpi"
    ),
    source="open-mpi/ompi:opal/runtime/opal_init.c; measured with copied libraries of Open MPI 4.1.4",
    facts=("image.mpi", "image.mpi.components"),
    modes=tuple(mode for mode in MPI_MODES if mode != "bind"),
)
def mpi_lacks_plugins(case: Case) -> Hit | None:
    """The image has Open MPI's libraries without the plugins that these libraries open at run time. Without
    plugins, MPI_Init aborts before Open MPI looks for a launcher (opal_shmem_base_select failed).
    """
    mpi = case.image.mpi
    if mpi is None or mpi.implementation != "openmpi" or not mpi.components or mpi.built_for:
        return None
    if mpi.interfaces or _TRANSPORTS & mpi.components.keys():
        return None
    because = f"{mpi_name(mpi)} finds no plugin that sends messages and no plugin that connects to a launcher"
    return Hit(case.cite("image.mpi"), "init-failure", because, stage=LaunchStage.START)


@rule(
    "image-mpi-not-measured",
    "toolkit's developers have not tested this MPI",
    severity="warning",
    fix=TRY_IT,
    source="tests/matrix covers Open MPI, MPICH and Intel MPI",
    facts=("image.mpi.version",),
    modes=MPI_MODES,
)
def image_mpi_not_measured(case: Case) -> Hit | None:
    """toolkit's developers tested launches with some MPI implementations. For other implementations, toolkit
    predicts a launch only if the host's mpirun and the image's MPI are the same release of the same MPI, or
    if the programs load the host's MPI.
    """
    case.ask("image.mpi.version")
    mpi = case.image.mpi
    if mpi is None or any(row.implementation == mpi.implementation for row in knowledge.mpi().mismatch):
        return None
    if case.mounted_over is not None and mpi != case.mounted_over.mpi:
        return None  # programs load the host's MPI, as they do without a container
    if case.mode == "mpirun-host" and is_same_mpi(host_launcher(case.host_facts), mpi):
        return None
    return Hit(
        case.cite("image.mpi"),
        "unknown",
        f"toolkit's developers have not tested {family(mpi.implementation)}",
    )


@rule(
    "libfabric-missing",
    "The MPI in the image does not find libfabric, which it needs",
    severity="error",
    fix="install libfabric in the image (Debian: package libfabric1), or mount the host's libfabric",
    source="recipes/knowledge/mpi.toml, [[libfabric]]; tests/matrix: 'libfabric.so.1 supplied'",
    facts=("image.mpi.version", "image.libfabric", "image.libraries", "image.programs"),
    modes=MPI_MODES,
)
def libfabric_missing(case: Case) -> Hit | None:
    """Intel MPI sends messages between nodes only through libfabric (libfabric.so.1). Before Intel MPI
    2021.18, even a single rank crashes with a segmentation fault if libfabric is missing. Intel MPI contains
    a copy of libfabric. The loader finds this copy only if LD_LIBRARY_PATH contains the folder of the copy,
    or if Intel's mpirun or mpi4py 4.1 adds the folder.
    """
    case.ask("image.mpi.version", "image.libfabric")
    mpi = case.image_facts.mpi
    if mpi is None or brings_libfabric(case):
        return None
    if setting_value(case, "I_MPI_FABRICS") == "shm":
        return None  # rule setting-breaks-mpi judges this setting
    if _in_reach(case, mpi):
        return None
    alone = case.mode != "mpirun-container" and (not _server(case) or bool(clearing_options(case)))
    for row in knowledge.mpi().libfabric:
        if row.of(mpi) and row.alone == alone and counts(row.nodes, case.request.nodes):
            because = f"{mpi_name(mpi)} finds no libfabric in the image"
            evidence = case.cite("image.mpi", "image.libfabric")
            outcome: Outcome = row.outcome
            if not row.alone:
                outcome, because, _ = after_failed_rank(case, outcome, because, connected=True)
            chance = _other_exits(case) if outcome == "crash" else ()
            stage = LaunchStage.START if row.alone else None
            return Hit(evidence, outcome, because, source=row.source, stage=stage, by_chance=chance)
    return None


@rule(
    "libfabric-lacks-providers",
    "The libfabric in the image does not search the folder of its providers (network plugins)",
    severity="error",
    fix="set the folder of the providers: `--env FI_PROVIDER_PATH=DIR`",
    source="ofiwg/libfabric:src/fabric.c, fi_ini; measured: Intel MPI 2021.13 on one node and on two nodes",
    facts=("image.mpi", "image.libfabric", "image.libfabric_providers", "image.libraries"),
    modes=("srun-pmix", "srun-pmi2", "srun-none", "mpirun-host"),
)
def libfabric_lacks_providers(case: Case) -> Hit | None:
    """The providers of Intel's libfabric are separate files. Without FI_PROVIDER_PATH, Intel's libfabric
    searches a folder that Intel chose when it built libfabric. Images do not have this folder. Without a
    provider, MPI_Init fails even for one rank. Intel MPI's script env/vars.sh sets FI_PROVIDER_PATH.
    LD_LIBRARY_PATH is not enough, because libfabric does not search LD_LIBRARY_PATH for its providers.
    """
    mpi, folder = case.image_facts.mpi, case.image_facts.providers_unsearched
    if mpi is None or mpi.implementation != "intelmpi" or brings_libfabric(case):
        return None
    shared = setting_value(case, "I_MPI_FABRICS") == "shm"
    if shared or (folder and setting_value(case, _PROVIDER_PATH)) or not _in_reach(case, mpi):
        return None
    # Facts files of earlier toolkit releases do not list providers; the rule then decides without the list.
    unread = "libfabric_providers" in case.image_facts.unknown
    found = case.image.libfabric_providers if unread else case.image_facts.libfabric_providers
    if not folder and found != ():
        return None
    because = f"{mpi_name(mpi)} finds no provider of its libfabric"
    evidence = case.cite("image.mpi", "image.libfabric")
    if not folder:
        return Hit(
            evidence,
            "init-failure",
            f"{because}: the loader cannot load any provider in the image",
            fix=_ADD_PROVIDER,
        )
    fix = f"set the folder of the providers: `--env {_PROVIDER_PATH}={folder}`"
    return Hit(evidence, "init-failure", f"{because}: the providers are in {folder}", fix=fix)


@rule(
    "image-sets-rank",
    "The image sets a variable that the launcher sets for each rank",
    severity="error",
    fix="build the image without this variable, which comes from the job in which the image was saved",
    source="pmodels/mpich:src/pmi/src/pmi_v1.c; measured: MPICH 4.0.2 with PMI_SIZE=1 and PMI_RANK=0",
    facts=("image.mpi",),
    modes=("srun-pmix", "srun-pmi2", "srun-none", "mpirun-host"),
)
def image_sets_rank(case: Case) -> Hit | None:
    """A variable of the image replaces the host's variable of the same name. An image that was saved inside a
    job may contain the rank and the size of this old job. Each rank of a new job then uses the rank and the
    size of the old job. If the image was saved in a job of one rank, each rank of the new job starts as a
    world of size 1, and the new job exits with status 0.
    """
    mpi = case.image.mpi
    if mpi is None or mpi.implementation not in HYDRA:
        return None
    given = case.image_facts.environment
    set_by = sorted(given.keys() & _RANK_VARIABLES)
    if not set_by or set_by[0] in case.plan.env:
        return None
    alone = given.get("PMI_SIZE") == "1" and given.get("PMI_RANK", "0") == "0"
    told = ", ".join(f"{name}={given[name]}" for name in set_by)
    because = f"the image sets {told}, which replaces the value that the launcher sets for each rank"
    evidence = tuple(f"image: {name}={given[name]}" for name in set_by)
    stage = LaunchStage.START
    return Hit(evidence, "singletons" if alone else "unknown", because, stage=stage)


def _other_exits(case: Case) -> tuple[Outcome, ...]:
    """Return the outcomes that may occur instead of a crash. With several ranks on each of several nodes,
    the host's mpirun may stop a rank before the rank crashes. tests/matrix/truth records two such launches,
    of Intel MPI 2021.11 and 2021.13, on the cluster pmix with 2 ranks on each of 2 nodes.
    """
    asked = case.request
    crowd = case.mode == "mpirun-host" and asked.nodes > 1 and asked.ranks_per_node > 1
    return ("init-failure",) if crowd else ()


def _in_reach(case: Case, mpi: ImageMpi) -> bool:
    """Return whether the MPI finds the image's libfabric in this launch."""
    path = case.image.libfabric
    own = [f"{mpi.prefix}/{below}" for below in _OWN_LIBFABRIC if mpi.implementation == "intelmpi"]
    if path is None or posixpath.dirname(path) not in own:
        return path is not None
    users = [
        program for program, library in (case.image_facts.programs or {}).items() if library == mpi.library
    ]
    if users and all(program.startswith(f"{mpi.prefix}/") and MPI4PY.match(program) for program in users):
        return True
    if "libfabric.so.1" in set(mpi.needs) - set(mpi.lacks or ()):
        return True
    if case.mode == "mpirun-container" and posixpath.dirname(path) in own[:2]:
        return True
    case.ask("image.libraries", failed_only=True)
    there = case.image_facts.libraries
    # Facts files of earlier toolkit releases, and facts from public reports, do not list the libraries.
    return there is None or "libfabric.so.1" in there


def _server(case: Case) -> str:
    """Return the interface through which the MPI connects to its launcher: ``pmi``, ``pmix``, or an empty
    string if the MPI uses no interface.
    """
    found = offer(case)
    return interface_in_use(case, found) if found else ""


def brings_libfabric(case: Case) -> bool:
    """Return whether the launch mounts the host's libfabric into a folder that the loader searches."""
    if case.mode == "bind" and "libfabric.so.1" in mounted_first(case):
        return True
    if not case.host_facts.libfabric:
        return False
    searched = case.plan.env.get("LD_LIBRARY_PATH", "").split(":")
    folder = posixpath.dirname(case.host_facts.libfabric)
    return any(b.split(":")[0] == folder and bind_target(b) in searched for b in case.plan.binds)


@rule(
    "mpi-release-defect",
    "This MPI release has a fault that affects this launch",
    severity="error",
    fix="use another release of this MPI",
    instead=MPI_MODES,
    source="recipes/knowledge/mpi.toml, [[defect]]",
    facts=("image.mpi.version", "image.mpi.device"),
    modes=("srun-pmix", "srun-pmi2", "mpirun-host", "bind"),
)
def mpi_release_defect(case: Case) -> Hit | None:
    """Recorded launches show that some MPI releases fail in certain launches, for example with several ranks
    on a node. Under Hydra, all ranks of a node can inherit the same PMIx identity from srun. This rule then
    counts these ranks as one rank.
    """
    case.ask("image.mpi.version")
    mpi, found = case.image.mpi, offer(case)
    alike = found is not None and found.shared and interface_in_use(case, found) == "pmix"
    ranks = 1 if alike else case.request.ranks_per_node
    for row in knowledge.mpi().defect:
        if (
            mpi is not None
            and row.of(mpi)
            and counts(row.nodes, case.request.nodes)
            and counts(row.ranks_per_node, ranks)
            and row.served_by in {"", _server(case)}
            and (not row.modes or case.mode in row.modes)
            and row.batch in {None, case.request.batch}
            and (not row.under or _started_by_openmpi(case, row.under))
            and (case.mode != "mpirun-host" or row.holds_under(host_launcher(case.host_facts)))
            and not _avoids_defect(case, mpi, row)
        ):
            fix = f"{TRY_IT}; or {row.fix}" if row.outcome == "unknown" else row.fix
            told = (row.title, row.title, fix, row.source)
            evidence = case.cite("image.mpi")
            if row.outcome == "ok":
                return Hit(evidence, None, *told, severity="warning")
            return Hit(evidence, row.outcome, *told, by_chance=row.by_chance)
    return None


def _avoids_defect(case: Case, mpi: ImageMpi, row: Defect) -> bool:
    """Return whether the launch avoids a defect: whether it sets the variable or option in ``lifted_by``. If
    the defect's row names a network module of MPICH (``netmod``), return instead whether MPICH uses another
    module. If MPICH's module is unknown and the defect only causes a warning (outcome ``ok``), the result is
    ``True``.
    """
    if not row.netmod:
        return row.lifted_by in {*case.plan.env, *case.plan.container}
    if chosen := setting_value(case, NETMOD):
        return chosen.lower() != row.netmod
    if row.outcome == "ok" and case.state("image.mpi.device") != "known":
        return True
    if mpi.device is None:
        raise Undecided("image.mpi.device")
    return netmods(mpi)[:1] != [row.netmod]


def _started_by_openmpi(case: Case, releases: str) -> bool:
    host = host_launcher(case.host_facts)
    return host is not None and host.implementation == "openmpi" and within(host.version or "", releases)


@rule(
    "stack-disagrees",
    "The image differs from its description in stack.json",
    severity="warning",
    fix="build the image again; until then, rely on what toolkit found, not on stack.json",
    source="toolkit.image.software.describe: stack.json compared with the image's files",
    facts=("image.stack",),
    advice=True,
)
def stack_disagrees(case: Case) -> Hit | None:
    """The build of the image wrote the versions of the image's software into ``/opt/toolkit/stack.json``.
    The software in the image has changed since the build.
    """
    case.ask("image.stack")
    if not case.image_facts.disagreements:
        return None
    return Hit(tuple(f"image: {line}" for line in case.image_facts.disagreements))
