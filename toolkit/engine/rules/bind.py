"""Rules about a host MPI that the launch mounts into the container to replace the image's MPI."""

from toolkit import knowledge
from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided, attempt, settle
from toolkit.engine.host_mpi import (
    SPEAKERS,
    finds_own_mpi,
    is_split,
    mounted_first,
    mounted_libraries,
    mounted_loads,
    provider_guarded,
    provider_of,
    targets_of,
)
from toolkit.engine.rule import MPI_MODES, Hit, LaunchStage, rule
from toolkit.engine.traits import MPICH_ABI, brings_orte, is_masked, mounted_folders
from toolkit.engine.wireup import offer
from toolkit.engine.words import mpi_name, plain
from toolkit.folders import is_below
from toolkit.model.mpifacts import HostMpi
from toolkit.versions import is_same_version, older, upstream

_CRAY = {"slingshot", "aries"}
"""Fast networks of Cray machines. On these machines, the MPI is in /opt/cray and not on PATH."""
_SOURCE = "Apptainer user guide, MPI: bind model; tests/matrix: set bind"


@rule(
    "bind-nothing-to-mount",
    "toolkit found no MPI of the host that can be mounted into the container",
    severity="error",
    fix="load the module of an MPI before you launch the job",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=("host.mpis", "host.folder_mpis"),
    modes=("bind",),
)
def bind_nothing_to_mount(case: Case) -> Hit | None:
    """A launch cannot mount an MPI from /usr, because the host's /usr would hide the image's /usr. The host's
    MPI must be in a separate folder, such as /opt/openmpi. toolkit searches PATH, Cray's folders below /opt,
    and the folders that environment modules name in variables. toolkit does not record user names, so it
    cannot mount an MPI from a folder whose path contains your user name.
    """
    host = provider_guarded(case)
    if host is None:
        looked = case.host_facts.folder_mpis is not None
        if not looked and _CRAY & set(case.host_facts.fabrics or ()):
            raise Undecided("host.folder_mpis")
        others = "no MPI is in Cray's folders or in folders that environment modules name"
        where = others if looked else "toolkit searched no other folder"
        title = f"No MPI of the host can be mounted: no mpirun is on PATH, and {where}"
        return Hit(case.cite("host.mpis"), "unavailable", title=title)
    if host.library is None:
        raise Undecided("host.mpis.library")
    if mounted_folders(host):
        return None
    why = "is in a system folder"
    if any(map(is_masked, (host.prefix or "", *(host.folders or ())))):
        why = "is in a folder whose path contains a user name, which toolkit does not record"
    because = f"toolkit cannot mount {mpi_name(host)} of the host, because {host.library} {why}"
    return Hit(case.cite("host.mpis", "host.mpis.library"), "unavailable", because)


@rule(
    "bind-has-no-effect",
    "Programs in the image do not load the mounted MPI library",
    severity="warning",
    fix="mount an MPI of the same family and ABI as the MPI in the image",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=("host.mpis", "image.mpi", "image.mpi.plugins"),
    modes=("bind",),
)
def bind_has_no_effect(case: Case) -> Hit | None:
    """The loader compares sonames (library names), so a mounted ``libmpich.so.12`` replaces neither
    ``libmpi.so.12`` nor ``libmpi.so.40``. A program's file may contain a library path, DT_RPATH, which the
    loader searches before LD_LIBRARY_PATH. conda's mpi4py has a DT_RPATH, so it loads the image's MPI.
    """
    case.ask("host.mpis", "image.mpi")
    host, mpi = provider_guarded(case), case.image.mpi
    if host is None or mpi is None or not case.plan.binds:
        return None
    same_name = mounted_loads(case)
    if same_name is None:
        raise Undecided("host.mpis.soname" if host.soname is None else "image.mpi.soname")
    if same_name:
        return None
    why = f"LD_LIBRARY_PATH lacks the folder of {host.library or 'the mounted MPI library'}"
    fix = ""
    if host.soname != mpi.soname:
        why = f"programs need {mpi.soname}, but the host's MPI library is {host.soname}"
    elif finds_own_mpi(case.image_facts):
        why = f"the loader finds {mpi.library} through the programs' DT_RPATH before it reads LD_LIBRARY_PATH"
        fix = (
            "use a launch mode that uses the image's MPI; or link the programs again without DT_RPATH "
            "(for mpi4py: install it with pip)"
        )
    because = f"{why}, so programs load the image's own {mpi_name(mpi)}"
    evidence = case.cite("host.mpis", "image.mpi")
    hides = sorted(set(knowledge.mpi().variables.hide_plugins) & set(case.plan.env))
    if hides and mpi.implementation == "openmpi" and mpi.plugins:
        because = f"{because}; this MPI does not find its components because of {', '.join(hides)}"
        return Hit(evidence, "init-failure", because, because, severity="error", stage=LaunchStage.START)
    return Hit(evidence, because=because, title=because, fix=fix)


@rule(
    "bind-name-of-another",
    "The mounted MPI library and the image's MPI library have the same file name but belong to different "
    "MPI families",
    severity="error",
    fix="mount an MPI of the same family as the MPI in the image",
    instead=MPI_MODES,
    source=f"tests/matrix/truth: bind of MPICH 4.1.3 over Open MPI 1.10.2, both libmpi.so.12; {_SOURCE}",
    facts=("host.mpis", "image.mpi"),
    modes=("bind",),
)
def bind_name_of_another(case: Case) -> Hit | None:
    """The libraries of Open MPI 1.10 and of the MPICH family are both called ``libmpi.so.12``, so the loader
    cannot distinguish them. A program that was built for Open MPI needs symbols such as
    ``ompi_mpi_comm_world``, which a library of the MPICH family does not have.
    """
    case.ask("host.mpis", "image.mpi")
    host, mpi = provider_guarded(case), case.original.mpi
    if host is None or mpi is None or not mounted_loads(case):
        return None
    pair = (mpi.implementation, host.implementation)
    if pair.count("openmpi") != 1 or not MPICH_ABI & set(pair):
        return None
    evidence = case.cite("host.mpis", "image.mpi")
    both = f"the image's {mpi_name(mpi)} and the host's {mpi_name(host)} both have a library {mpi.soname}"
    if mpi.implementation == "openmpi":
        because = f"{both}, and the host's library lacks symbols that programs built for Open MPI need"
        return Hit(evidence, "loader-failure", because)
    return Hit(
        evidence,
        "unknown",
        f"{both}; toolkit's developers have not tested whether programs work with the host's library",
    )


@rule(
    "bind-glibc-older",
    "The host's MPI needs a newer C library than the image has",
    severity="error",
    fix="use an image whose distribution has glibc and is at least as new as the host's distribution",
    instead=MPI_MODES,
    source='tests/matrix: set bind, "version `GLIBC_2.38\' not found"',
    facts=("host.mpis", "image.mpi", "image.glibc"),
    modes=("bind",),
)
def bind_glibc_older(case: Case) -> Hit | None:
    """The host's libraries need at least a certain release of glibc in the image, and never work with musl.
    Even programs that load the image's MPI can fail, because they may load other libraries of the host. If
    both the image and the mounts contain libfabric.so.1, for example, the loader selects the mounted library.
    """
    case.ask("host.mpis", "image.mpi", "image.glibc")
    host, glibc = provider_guarded(case), case.image.glibc
    if host is None or host.glibc_needed is None or not _loads_mounted(case):
        return None
    if glibc is not None and not older(glibc, host.glibc_needed):
        return None
    because = f"{host.library} needs glibc {host.glibc_needed}; the image has {glibc or 'no glibc'}"
    return Hit(case.cite("host.mpis", "image.glibc"), "loader-failure", because, because)


def _loads_mounted(case: Case) -> bool:
    """Return whether programs load at least one of the mounted libraries."""
    mpi = case.image_facts.mpi
    return mpi is not None and bool(mounted_first(case) & {*mpi.needs, mpi.soname})


@rule(
    "bind-library-older",
    "The loader finds the host's older libfabric before the image's newer libfabric",
    severity="error",
    fix="mount an MPI of the same family and ABI as the MPI in the image",
    instead=MPI_MODES,
    source=(
        "ld.so(8): LD_LIBRARY_PATH before DT_RUNPATH; ofiwg/libfabric:libfabric.map.in; "
        "tests/matrix/truth: bind of MPICH 4.1.3 over Open MPI 5.0.10"
    ),
    facts=("host.mpis", "image.mpi"),
    modes=("bind",),
)
def bind_library_older(case: Case) -> Hit | None:
    """The host's libfabric lacks an interface that the image's MPI needs, because the host's libfabric is too
    old. The loader finds the mounted libfabric of the host before the image's libfabric. The rule applies if
    programs load the image's MPI, or the image's libopen_mpi (Open MPI 6) with the host's libmpi.
    """
    case.ask("host.mpis", "image.mpi")
    host, mpi, half = provider_guarded(case), case.original.mpi, is_split(case)
    if host is None or mpi is None or mpi.fabric_asked is None or (mounted_loads(case) and not half):
        return None
    taken = mounted_libraries(case) & set(host.needs or ()) if half else mounted_first(case)
    if "libfabric.so.1" not in taken:
        return None
    if not older(host.fabric, mpi.fabric_asked):
        return None
    there = f"the host's libfabric has only the symbol versions up to FABRIC_{host.fabric}"
    because = f"{mpi_name(mpi)} in the image needs FABRIC_{mpi.fabric_asked}, but {there}"
    return Hit(case.cite("host.mpis", "image.mpi"), "loader-failure", because)


@rule(
    "bind-library-missing",
    "The host's MPI needs a library that the image does not have",
    severity="error",
    fix="also mount the host's folder that contains the missing library",
    instead=MPI_MODES,
    source="tests/matrix: set bind, 'libfabric.so.1: cannot open shared object file'",
    facts=("host.mpis", "image.mpi", "image.libraries"),
    modes=("bind",),
)
def bind_library_missing(case: Case) -> Hit | None:
    """The launch mounts only the folders of the host's MPI. If this MPI needs libraries from other folders of
    the host, the loader must find these libraries in the image.
    """
    case.ask("host.mpis", "image.mpi")
    host = provider_guarded(case)
    if host is None or not case.plan.binds or not mounted_loads(case):
        return None
    return _judge_missing(case, _linked_libraries(host) | _second_libraries(case, host))


def _judge_missing(case: Case, libraries: set[str]) -> Hit | None:
    """Return a finding if one of the libraries is neither mounted nor in the image; otherwise ``None``."""
    original, offered = case.original_facts.mpi, case.image_facts.libraries
    there = set(original.needs if original else ()) if offered is None else set(offered)
    lacking = sorted(libraries - mounted_libraries(case) - there)
    if not lacking:
        return None
    if offered is None and not ("libfabric.so.1" in lacking and "libfabric" in case.image_facts.absent):
        raise Undecided("image.libraries")
    because = f"the mounted MPI needs {', '.join(lacking)}, which the image does not have"
    fact = "image.libfabric" if offered is None else "image.libraries"
    return Hit(case.cite("host.mpis", fact), "loader-failure", because)


def _linked_libraries(host: HostMpi) -> set[str]:
    """Return the libraries that the host's MPI library itself needs, not those that only components need."""
    of_components = {n for names in (host.components_need or {}).values() for n in names}
    return {*(host.needs or ()), *(set(host.outside or ()) - of_components)}


def _second_libraries(case: Case, host: HostMpi) -> set[str]:
    """If programs load libmpi from the host and libopen_mpi from the image, return the libraries that they
    need because of libopen_mpi; otherwise, return an empty set.

    libopen_mpi needs PMIx. The loader finds a mounted PMIx of the host before the image's PMIx. Programs then
    need all libraries that the PMIx component of the host's MPI needs.
    """
    if not is_split(case):
        return set()
    taken = mounted_first(case) & set(case.original.mpi.needs if case.original.mpi else ())
    return {n for names in (host.components_need or {}).values() if taken & set(names) for n in names}


@rule(
    "bind-component-lacks-library",
    "A component of the mounted MPI needs a library that the image does not have",
    severity="error",
    fix="also mount the host's folder that contains the missing library",
    instead=MPI_MODES,
    source="open-mpi/ompi:opal/mca/base/mca_base_component_repository.c at v4.1; tests/matrix/truth: bind",
    facts=("host.mpis", "image.mpi", "image.libraries"),
    modes=("bind",),
)
def bind_component_lacks_library(case: Case) -> Hit | None:
    """Open MPI skips a component if it cannot load the component's libraries. Without a component for the
    launcher's PMI or PMIx, ranks do not find each other.
    """
    case.ask("host.mpis", "image.mpi")
    host, found = provider_guarded(case), offer(case)
    if host is None or found is None or not mounted_loads(case) or not _opens_own(case, host):
        return None
    faces = ("pmix",) if found.pmix else ("pmi1", "pmi2")
    said = [attempt(_judge_missing, case, needs) for needs in _wiring(host, faces)]
    if not said or None in said:
        return None
    return settle(next((one for one in said if isinstance(one, Undecided)), said[0]))


def _wiring(host: HostMpi, interfaces: tuple[str, ...]) -> list[set[str]]:
    """Return, for each component of the host's MPI that supports an interface in ``interfaces`` (such as
    ``pmix``), the libraries that the component needs. The list is empty if components are not separate files.
    """
    needs = host.components_need or {}
    told = (host.components or {}).get("pmix", ())
    names = {*told, *(name.removeprefix("pmix_") for name in needs if name.startswith("pmix_"))}
    speaking = sorted(name for name in names if any(SPEAKERS[face].match(name) for face in interfaces))
    return [set(needs.get(f"pmix_{name}", ())) for name in speaking]


@rule(
    "bind-modules-differ",
    "The host's UCX would load the image's UCX modules, which are from a different release",
    severity="error",
    fix="use an image with the host's UCX release",
    instead=MPI_MODES,
    source="tests/matrix: set bind, 'symbol lookup error: libucs_fuse.so.0'",
    facts=("host.mpis", "image.mpi"),
    modes=("bind",),
)
def bind_modules_differ(case: Case) -> Hit | None:
    """UCX's library libucs looks for UCX's modules in a fixed folder. In the container, this folder contains
    the image's modules, so the host's libucs would load modules of a different UCX release.
    """
    case.ask("host.mpis", "image.mpi")
    host, inside = provider_guarded(case), case.original_facts.ucx
    if host is None or inside is None or not case.plan.binds or not _loads_mounted(case):
        return None
    if "libucs.so.0" not in mounted_libraries(case) or host.relocatable:
        return None
    if host.ucx is None or is_same_version(host.ucx, inside):
        return None
    because = f"the host's UCX {plain(host.ucx)} would load modules of UCX {plain(inside)} from the image"
    evidence = case.cite("host.mpis", "image.ucx")
    if older(host.ucx, inside):
        return Hit(evidence, "loader-failure", because, because)
    return Hit(evidence, "unknown", f"{because}; toolkit's developers have not tested this")


@rule(
    "bind-plugins-missing",
    "The mounted Open MPI does not find its components",
    severity="error",
    fix="mount the folder of Open MPI's components, and set OMPI_MCA_mca_base_component_path to that folder",
    source="tests/matrix: set bind, 'libs only' against 'libs+plugins+OMPI_MCA_mca_base_component_path'",
    facts=("host.mpis", "image.mpi"),
    modes=("bind",),
)
def bind_plugins_missing(case: Case) -> Hit | None:
    """If Open MPI's components are separate files, Open MPI looks for them in a folder whose path was set at
    build time. In the container, the component folder of the host's Open MPI is missing, or contains the
    image's components, which work only with the release of Open MPI in the image.
    """
    case.ask("host.mpis", "image.mpi")
    host, inside = provider_of(case), case.original_facts.mpi
    if host is None or inside is None or not host.plugins or not mounted_loads(case):
        return None
    if _opens_own(case, host):
        return None
    if inside.plugins and is_same_version(inside.version or "", host.version or ""):
        return None
    evidence = case.cite("host.mpis", "image.mpi")
    because = f"the host's {mpi_name(host)} looks for components in {host.plugins}, which is not mounted"
    if inside.plugins and _loads_components_of(host.version, inside.version):
        pair = f"{mpi_name(host)} with components of {mpi_name(inside)}"
        because = f"{because}; toolkit's developers have not tested {pair}"
        return Hit(evidence, "unknown", because)
    return Hit(evidence, "init-failure", because)


def _opens_own(case: Case, host: HostMpi) -> bool:
    """Return whether the host's Open MPI finds the host's component files in the container."""
    if not host.plugins or "OMPI_MCA_mca_base_component_path" in case.plan.env:
        return bool(host.plugins)
    return any(is_below(host.plugins, target) for target in targets_of(case.plan))


def _loads_components_of(host: str | None, image: str | None) -> bool:
    """Return whether the host's Open MPI may be able to load components of the image's Open MPI: both are of
    one series of Open MPI 4, such as 4.1.

    Before Open MPI loads a component, it checks only the version of the component interface
    (open-mpi/ompi:opal/mca/base at v4.1.4, mca_base_component_repository.c).
    """
    one, other = (upstream(v or "").split(".")[:2] for v in (host, image))
    return one[0] == "4" and one == other


@rule(
    "bind-abi-split",
    "Programs need Open MPI's libopen_mpi, which the host's older Open MPI does not have",
    severity="error",
    fix="mount an Open MPI of the same release as the Open MPI in the image",
    instead=MPI_MODES,
    source="open-mpi/ompi:docs 6.0, libopen_mpi; tests/matrix: set bind with Open MPI 6.0.0rc2",
    facts=("host.mpis", "image.mpi"),
    modes=("bind",),
)
def bind_abi_split(case: Case) -> Hit | None:
    """Programs that were built for Open MPI 6 need libmpi and libopen_mpi. An older host MPI has only libmpi,
    so these programs load libmpi from the host and libopen_mpi.so.40 from the image.
    """
    case.ask("host.mpis", "image.mpi")
    host, inside = provider_guarded(case), case.original.mpi
    if not (host and inside and is_split(case)):
        return None
    evidence = case.cite("host.mpis", "image.mpi")
    own, mounted = mpi_name(inside), mpi_name(host)
    because = f"programs load the image's libopen_mpi ({own}), but the host's libmpi ({mounted})"
    if brings_orte(host):
        return Hit(evidence, "init-failure", because)
    if host.relocatable and "OPAL_PREFIX" not in case.plan.env:
        return Hit(evidence, "crash", because)
    return None
