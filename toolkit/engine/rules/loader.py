"""Rules about what the image's loader finds: an MPI for programs, and the libraries that the MPI needs."""

import posixpath
import re

from toolkit.engine.case import Case
from toolkit.engine.host_mpi import mounted_first, mounted_loads, provider_guarded
from toolkit.engine.rule import TRY_IT, Hit, rule
from toolkit.engine.rules.image import MPI4PY, brings_libfabric
from toolkit.engine.search_path import launch_search_path
from toolkit.engine.words import mpi_name
from toolkit.model.mpifacts import HostMpi, ImageMpi
from toolkit.versions import within

_NAME_MPI = (
    "build the program with the image's MPI, or set LD_LIBRARY_PATH in the image to the MPI library's folder"
)
_NAME_LIBRARY = (
    "install the library in the image, or set LD_LIBRARY_PATH in the image to the library's folder"
)
_SOURCE = "ld.so(8): 'cannot open shared object file: No such file or directory'"
_DRIVER = re.compile(r"lib(cuda|nvidia-[\w-]+)\.so(\.\d+)*\Z")
"""A pattern for libraries of the host's GPU driver, which ``--nv`` mounts
(apptainer/apptainer:etc/nvliblist.conf).
"""


def _users(case: Case) -> dict[str, str]:
    """Return a dictionary with the image's programs that need an MPI. The value is the MPI library that the
    loader finds for the program, or an empty string if the loader finds none. In the mode ``gloo``, the
    dictionary contains only Horovod's extension.
    """
    found = case.image_facts.programs or {}
    return {p: library for p, library in found.items() if case.mode != "gloo" or "/horovod/" in p}


def _is_replaced(case: Case) -> bool:
    """Return whether programs load the host's MPI instead of the image's MPI."""
    return case.mode == "bind" and mounted_loads(case) is True


def _folders_before_image(case: Case) -> str | None:
    """Return the LD_LIBRARY_PATH of this launch, or ``None`` if it equals the image's LD_LIBRARY_PATH."""
    asked = launch_search_path(case.host_facts, case.plan)
    return None if asked == case.image_facts.environment.get("LD_LIBRARY_PATH") else asked


@rule(
    "programs-find-no-mpi",
    "The image's loader does not find the MPI that programs in the image need",
    severity="error",
    fix=_NAME_MPI,
    source=_SOURCE,
    facts=("image.programs",),
)
def programs_find_no_mpi(case: Case) -> Hit | None:
    """The image has an MPI, but no program finds this MPI. One possible reason is that the loader does not
    search the MPI's folder. Another is that the programs need a different MPI implementation, whose library
    has another name. In the launch mode gloo, ranks communicate without MPI. toolkit then checks only
    Horovod's library, because a Horovod that was built with MPI does not load without an MPI library.
    """
    mpi = case.image_facts.mpi
    if mpi is None and case.mode != "gloo":
        return None  # rule image-lacks-mpi reports this fault
    case.ask("image.programs", failed_only=True)
    users = _users(case)
    if not users or any(users.values()) or _launcher_sets_path(case):
        return None
    searched = _folders_before_image(case)
    if _is_replaced(case) or (mpi and posixpath.dirname(mpi.library) in (searched or "").split(":")):
        return None
    first, *others = users
    who = f"{first} (and {len(others)} more)" if others else first
    because = f"the image's loader does not find the MPI library of {who}"
    evidence = case.cite("image.programs", *(("image.mpi",) if mpi else ()))
    doubt = f"{TRY_IT}; or {_NAME_MPI}"
    if any(map(MPI4PY.match, users)):
        return Hit(
            evidence,
            "unknown",
            f"{because}; toolkit does not know whether mpi4py finds an MPI by itself",
            fix=doubt,
        )
    if searched is None:
        return Hit(evidence, "loader-failure", because)
    return Hit(
        evidence,
        "unknown",
        f"{because}; toolkit does not know whether LD_LIBRARY_PATH={searched} contains the MPI library",
        fix=doubt,
    )


def _launcher_sets_path(case: Case) -> bool:
    """Return whether the image's launcher sets an LD_LIBRARY_PATH with which the program finds its MPI.

    If a launch calls Open MPI's mpirun by its full path, mpirun sets LD_LIBRARY_PATH for its ranks to the
    folder of its libraries (open-mpi/ompi:docs/man-openmpi/man1/mpirun.1.rst, --prefix).
    """
    mpi, program = case.image_facts.mpi, case.image_facts.program
    if mpi is None or mpi.implementation != "openmpi" or not case.plan.inside:
        return False
    needed = {program.needs} if program else {case.image_facts.programs_need.get(p) for p in _users(case)}
    called = posixpath.dirname(case.plan.launcher[0]) == f"{mpi.prefix}/bin"
    return called and needed == {mpi.soname} and posixpath.dirname(mpi.library) == f"{mpi.prefix}/lib"


@rule(
    "mpi-lacks-library",
    "The image's loader does not find a library that the image's MPI needs",
    severity="error",
    fix=_NAME_LIBRARY,
    source=_SOURCE,
    facts=("image.mpi", "image.mpi.lacks", "host.gpu_driver"),
)
def mpi_lacks_library(case: Case) -> Hit | None:
    """If the image lacks a library that the MPI needs, programs and the MPI's launcher fail before they call
    MPI. An image need not contain the libraries of the NVIDIA driver, because Apptainer's option --nv mounts
    these libraries from the host.
    """
    mpi, gloo = case.image_facts.mpi, case.mode == "gloo"
    if mpi is None:
        if gloo and _users(case):
            case.ask("image.mpi", failed_only=True)
        return None
    if gloo and mpi.library not in _users(case).values():
        return None
    case.ask("image.mpi.lacks", failed_only=True)
    lacking = sorted(set(mpi.lacks) - _mounted_libraries(case))
    driver = [name for name in lacking if _DRIVER.match(name)]
    if driver:
        case.ask("host.gpu_driver")
    if case.host_facts.gpu_driver:
        lacking = [name for name in lacking if name not in driver]
    evidence = case.cite("image.mpi", "image.mpi.lacks")
    if lacking:
        return _judge_missing(case, mpi, lacking, evidence)
    if not driver or "--nv" in case.plan.container:
        return None
    title = f"{mpi_name(mpi)} needs {', '.join(driver)}, which only --nv mounts"
    return Hit(evidence, severity="warning", title=title, fix="start the container with `--nv`")


def _judge_missing(case: Case, mpi: ImageMpi, libraries: list[str], evidence: tuple[str, ...]) -> Hit:
    because = f"{mpi_name(mpi)} needs {', '.join(libraries)}, which the image's loader does not find"
    doubt = f"{TRY_IT}; or {_NAME_LIBRARY}"
    searched = _folders_before_image(case)
    if searched is not None:
        because = f"{because}; toolkit does not know whether LD_LIBRARY_PATH={searched} contains the library"
        return Hit(evidence, "unknown", because, fix=doubt)
    if mpi.library in _users(case).values() or mpi.soname in (case.image_facts.libraries or ()):
        return Hit(evidence, "loader-failure", because)
    because = f"{because}; toolkit does not know whether a program in the image finds the library"
    return Hit(evidence, "unknown", because, fix=doubt)


def _mounted_libraries(case: Case) -> set[str]:
    """Return the sonames of the libraries that the launch mounts into the container."""
    found = {"libfabric.so.1"} if brings_libfabric(case) else set()
    return found | mounted_first(case) if case.mode == "bind" else found


@rule(
    "bind-lacks-mpi-4",
    "mpi4py in the image calls functions of MPI 4, which the mounted MPI does not have",
    severity="error",
    fix="build the image's mpi4py with MPICH 3.4, which implements MPI 3.1 like the host's MPI",
    source=(
        "hiddenSymmetries/simsopt issue 455 (Shifter: 'undefined symbol: MPI_Neighbor_alltoallv_c'); "
        "cp2k/cp2k pull request 4006; mpi4py/mpi4py:src/lib-mpi at 4.0.0"
    ),
    facts=("host.mpis", "host.folder_mpis", "image.mpi", "image.mpi4py"),
    modes=("bind",),
)
def bind_lacks_mpi_4(case: Case) -> Hit | None:
    """All MPI libraries that are binary compatible with MPICH share one file name, whether they implement MPI
    3.1 or MPI 4. An mpi4py 4.0 that was built with MPICH 4 needs functions of MPI 4. A library for MPI 3.1
    does not have these functions, so Python cannot import mpi4py.
    """
    provider, own = provider_guarded(case), case.original_facts.mpi
    if provider is None or own is None or not mounted_loads(case):
        return None
    of_4, of_3 = _of_standard(own, ">=4.0"), _of_standard(provider, "<4.0")
    if not of_4 or not of_3:
        return None
    case.ask("image.mpi4py", failed_only=True)
    if not within(case.image_facts.mpi4py or "", ">=4.0,<4.1"):
        return None
    because = (
        f"mpi4py {case.image_facts.mpi4py} was built with {mpi_name(own)}, and {mpi_name(provider)} "
        f"implements MPI 3.1"
    )
    found = "host.folder_mpis" if provider in (case.host_facts.folder_mpis or ()) else "host.mpis"
    return Hit(case.cite("image.mpi4py", "image.mpi", found), "loader-failure", because)


def _of_standard(mpi: ImageMpi | HostMpi, mpich: str) -> bool:
    """Return whether the release of an MPICH is in the range ``mpich``, such as ``>=4.0``. For Cray MPI, the
    release of the MPICH on which it is based must be in this range. Cray MPI 9 is based on MPICH 4.
    """
    if mpi.implementation == "cray":
        return within(mpi.version or "", mpich.replace("4.0", "9.0"))
    return mpi.implementation == "mpich" and within(mpi.version or "", mpich)


@rule(
    "bind-lacks-lustre",
    "For files on Lustre, MPI-IO of Cray MPICH needs liblustreapi, which the image does not have",
    severity="info",
    fix=(
        "if the program uses neither MPI-IO nor parallel HDF5, change nothing; if it uses one of them, bind "
        "the host's `/usr/lib64/liblustreapi.so.1`, and add the folder of the bind to LD_LIBRARY_PATH"
    ),
    source=(
        "underworldcode/underworld2 issue 668 and Pawsey technical newsletter of 13 March 2023 "
        "('Assertion failed … liblustreapi != NULL')"
    ),
    facts=("host.mpis", "host.folder_mpis", "image.libraries"),
    modes=("bind",),
    advice=True,
)
def bind_lacks_lustre(case: Case) -> Hit | None:
    """Cray MPICH opens liblustreapi.so by name at the first MPI_File_open on Lustre. If the loader does not
    find the library, Cray MPICH aborts the program. Programs that use MPI only for messages do not need the
    library.
    """
    provider = provider_guarded(case)
    if provider is None or provider.implementation != "cray" or not mounted_loads(case):
        return None
    case.ask("image.libraries")
    words = " ".join((*case.plan.container, *case.plan.binds))
    there = any(name.startswith("liblustreapi.so") for name in case.image.libraries or ())
    if there or "liblustreapi" in words or "/usr/lib64" in words:
        return None
    found = "host.folder_mpis" if provider in (case.host_facts.folder_mpis or ()) else "host.mpis"
    return Hit((*case.cite(found), "image: libraries: no liblustreapi.so"))
