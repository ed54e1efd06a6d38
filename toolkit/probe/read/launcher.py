"""Find, in the probe's output, the MPI launchers on PATH and the variables that mpirun sets for a rank."""

import posixpath
import re

import msgspec

from toolkit import knowledge
from toolkit.model.mpifacts import HostMpi
from toolkit.probe.evidence import Section
from toolkit.probe.read import mpi_library

_FAMILIES = (
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE)\)\s+v?(\d[\w.]*)")),
    ("intelmpi", re.compile(r"Intel\(R\) MPI Library\D*(\d[\w.]*)(?: Update 0*(\d{1,2}))?")),
    ("mpich", re.compile(r"^\s*Version:\s+(\d[\w.]*)")),
)
_LACKS = re.compile(r"error while loading shared libraries: ([\w.+-]+): cannot open shared object file")
_IN_PATH = re.compile(r"/(?:[a-z0-9-]*mpi[a-z0-9]*)[/-]v?(\d{1,4}\.\d[\w.]*)(?:[/-]|\Z)", re.IGNORECASE)
"""A pattern for an MPI's release in the path of its folder, such as ``/opt/cray/pe/mpich/8.1.29/ofi``."""
_NAME = re.compile(r"[A-Za-z_]\w*(=|$)", re.ASCII)


def launchers(section: Section, environment: Section, libraries: Section) -> tuple[HostMpi, ...]:
    """Return one :class:`HostMpi` for each MPI installation with a launcher.

    ``section`` has three kinds of lines about each launcher: ``path``; ``real``, the path without links; and
    ``says``, a line that the launcher prints for ``--version``. ``environment`` lists the variables of a
    rank that mpirun started. ``libraries`` lists the MPI libraries beside each launcher.

    If an installation contains several launchers, the result includes only the first launcher. If only some
    launchers in a folder print a version, the function ignores the launchers that print no version.
    """
    mpis: dict[tuple[str, str | None, str], HostMpi] = {}
    programs = [p for p in _programs(section) if not p[0].endswith("/srun")]
    folders = {posixpath.dirname(real) for _, real, output in programs if _identify(output)[0] != "unknown"}
    for path, real, output in programs:
        implementation, version = _identify(output)
        if implementation == "mpich" and mpi_library.is_mvapich(path, libraries):
            implementation, version = "mvapich2", None
        folder = posixpath.dirname(real)
        if implementation == "unknown" and folder in folders:
            continue
        first = not mpis
        exported = leaks(environment) if first else None
        mpi = HostMpi(
            implementation=implementation,
            version=version,
            launcher=path,
            lacks=tuple(dict.fromkeys(_LACKS.findall(output))),
            leaks=exported,
            pmix=pmix_server(environment) if first else None,
            prefix=posixpath.dirname(folder),
        )
        library = mpi_library.of_launcher(path, implementation, libraries)
        mpis.setdefault(
            (implementation, version, folder), _with_library(mpi, library, environment) if library else mpi
        )
    return tuple(mpis.values())


def of_folders(libraries: Section, environment: Section) -> tuple[HostMpi, ...]:
    """Return the MPIs whose libraries the probe found in folders without a launcher."""
    return tuple(_of_folder(library, environment) for library in mpi_library.separate_libraries(libraries))


def _of_folder(library: mpi_library.MpiLibrary, environment: Section) -> HostMpi:
    prefix = posixpath.dirname(posixpath.dirname(library.found_path))
    version = _IN_PATH.search(library.path)
    mpi = HostMpi(
        implementation=library.implementation,
        version=version[1] if version else None,
        launcher="",
        prefix=posixpath.dirname(prefix) if posixpath.basename(prefix) == "lib" else prefix,
    )
    # Use the path of the link to the library, such as lib-abi-mpich/libmpi.so.12.
    # ld.so searches for the name of the link; the library's real file may have another name.
    return msgspec.structs.replace(_with_library(mpi, library, environment), library=library.found_path)


def _with_library(mpi: HostMpi, library: mpi_library.MpiLibrary, environment: Section) -> HostMpi:
    exported = tuple(variables(environment)) if mpi.leaks is not None else None
    return msgspec.structs.replace(
        mpi,
        library=library.path,
        soname=library.soname,
        interfaces=library.interfaces,
        device=library.device,
        own_shm=library.own_shm,
        needs=mpi_library.sonames(library),
        components=library.components or None,
        components_need=mpi_library.component_needs(library),
        places=mpi_library.places(library),
        folders=mpi_library.folders(library),
        outside=mpi_library.loaded_from_outside(library, mpi.prefix or "/"),
        ucx=mpi_library.ucx(library),
        fabric=mpi_library.fabric(library),
        glibc_needed=mpi_library.glibc_needed(library, mpi.prefix or "/"),
        plugins=library.plugins,
        relocatable=library.is_relocatable(exported),
    )


def leaks(section: Section) -> tuple[str, ...] | None:
    """Return the names of a rank's variables that contain paths of the launcher's installation; None if the
    rank had no variable with the prefix ``PMIX_``, for example because no rank ran.
    """
    names = variables(section)
    # Open MPI's mpirun sets PMIX_ variables for each rank.
    if not section.ok or not any(name.startswith("PMIX_") for name in names):
        return None
    return tuple(name for name in knowledge.mpi().variables.paths if name in names)


def pmix_server(section: Section) -> str | None:
    """Return the release of the launcher's PMIx server, from a rank's variable ``PMIX_VERSION``."""
    return variables(section).get("PMIX_VERSION") if section.ok else None


def variables(section: Section) -> dict[str, str]:
    """Return the variables in a section; the value is empty if the probe reported only the name."""
    pairs = (line.partition("=") for line in section.lines if _NAME.match(line))
    return {name: value for name, _, value in pairs}


def _programs(section: Section) -> list[tuple[str, str, str]]:
    programs: list[tuple[str, str, list[str]]] = []
    for line in section.lines:
        word, _, rest = line.partition(" ")
        if word == "path":
            programs.append((rest, rest, []))
        elif word == "real" and programs:
            programs[-1] = (programs[-1][0], rest or programs[-1][0], programs[-1][2])
        elif word == "says" and programs:
            programs[-1][2].append(rest)
    return [(path, real, "\n".join(lines)) for path, real, lines in programs]


def _identify(output: str) -> tuple[str, str | None]:
    for name, pattern in _FAMILIES:
        if match := re.search(pattern.pattern, output, re.MULTILINE | re.DOTALL):
            # Until 2020, Intel MPI had releases such as 2019 Update 4, whose packages have the version
            # 2019.4.243. Write the release as 2019.4.
            return name, ".".join(part for part in match.groups() if part)
    return "unknown", None
