"""Read which library belongs to each MPI launcher of a host, and what binding it would take with it."""

import posixpath
import re
from dataclasses import dataclass, field

from toolkit.folders import is_below, is_system
from toolkit.probe.evidence import Section
from toolkit.probe.read.machine import newest_glibc

APART = "-"
"""What the probe writes in place of a launcher."""
_C_LIBRARY = re.compile(
    r"(?:lib(?:c|m|dl|rt|pthread|util|resolv|anl|nsl)\.so\.\d+|ld-linux\S*|linux-vdso\S*)$"
)
_PLUGINS = {"s1": "pmi1", "s2": "pmi2"}
"""Open MPI's components that speak Slurm's PMI; the others of the framework speak PMIx, or nothing."""
_PMIX_PLUGIN = re.compile(r"(?:ext\d|pmix\d)x$")


_MAKERS = {"MVAPICH": "mvapich2", "CRAY MPICH": "cray", "ParaStation": "parastation"}
"""Texts in libraries that are made of MPICH."""
_DEVICE = re.compile(r"ch[34]:[a-z0-9, ]{2,40}\Z")
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}\Z", re.ASCII)
_COMPONENT = re.compile(r"mca_([a-z]+)_(\w+?)(?:_component|\.so)\Z")


@dataclass(frozen=True, slots=True)
class MpiLibrary:
    """An MPI library and what the probe says of it: the lines by their first word."""

    path: str
    said: dict[str, list[str]] = field(default_factory=dict)
    whole: bool = True
    """The section ended by itself: nothing was cut off."""

    def values(self, word: str) -> list[str]:
        return self.said.get(word, [])

    @property
    def found(self) -> str:
        """The path by which it was found: a link, where ``path`` is the file."""
        return next(iter(self.values("found")), self.path)

    @property
    def holds(self) -> set[str]:
        """Texts in it, and in the library below it, that tell what it is and what it speaks."""
        return set(self.values("holds"))

    @property
    def followed(self) -> bool:
        """What it needs could be told, and was told to its end."""
        return "yes" in self.values("followed") and (self.whole or "yes" in self.values("described"))

    @property
    def needs(self) -> dict[str, str]:
        """Sonames of all that is loaded with it, with the paths; empty where it is not found."""
        return {name: path for name, _, path in (line.partition(" ") for line in self.values("needs"))}

    @property
    def components(self) -> dict[str, tuple[str, ...]]:
        """Its components, built in or files, by framework: those that wire ranks up and carry messages."""
        found: dict[str, set[str]] = {}
        for word in ("has", "component"):
            for name in self.values(word):
                if told := _COMPONENT.match(name):
                    found.setdefault(told[1], set()).add(told[2])
        return {framework: tuple(sorted(names)) for framework, names in sorted(found.items())}

    @property
    def taken(self) -> dict[str, dict[str, str]]:
        """What each component that is a file loads and the library does not, with the paths."""
        found: dict[str, dict[str, str]] = {}
        for line in self.values("takes"):
            file, name, path = (*line.split(" ", 2), "")[:3]
            told = _COMPONENT.match(file)
            if told and name and not _C_LIBRARY.match(name) and name not in {self.soname, *self.closure}:
                found.setdefault(f"{told[1]}_{told[2]}", {})[name] = path
        return found

    @property
    def carried(self) -> dict[str, str]:
        """What is loaded with it and with its components."""
        return {**{n: p for taken in self.taken.values() for n, p in taken.items()}, **self.closure}

    @property
    def plugins(self) -> str | None:
        """The folder of its components, where they are files."""
        return next(iter(self.values("plugins")), None)

    @property
    def implementation(self) -> str:
        if "ompi_mpi_comm_world" in self.holds:
            return "openmpi"
        if "I_MPI_ROOT" in self.holds:
            return "intelmpi"
        for text, name in _MAKERS.items():
            if text in self.holds:
                return name
        return "mpich" if self.holds & {"MPICH Version", "MPIR_CVAR_"} else "unknown"

    @property
    def device(self) -> str | None:
        """MPICH's device with its network modules, as ``ch4:ofi,ucx``."""
        said = next(iter(self.values("device")), None)
        return ",".join(said.replace(",", " ").split()) if said and _DEVICE.match(said) else None

    @property
    def soname(self) -> str | None:
        """What programs name to load it: a name within that the file, or the link to it, goes by."""
        files = {posixpath.basename(self.path), posixpath.basename(self.found)}
        fitting = [n for n in self.values("names") if any(f == n or f.startswith(f"{n}.") for f in files)]
        return fitting[0] if len(fitting) == 1 else None

    @property
    def closure(self) -> dict[str, str]:
        """Return what is loaded with it, the C library's own left out."""
        return {name: path for name, path in self.needs.items() if not _C_LIBRARY.match(name)}

    @property
    def interfaces(self) -> tuple[str, ...] | None:
        """Return the launch interfaces that it can use; ``None`` where not all that it loads was followed."""
        if not self.followed:
            return None
        linked = {name.split(".so")[0] for name in self.needs}
        found = {"pmix"} if "libpmix" in linked else set()
        if self.implementation == "openmpi":
            plugins = {
                m[2] for c in self.values("component") if (m := _COMPONENT.match(c)) and m[1] == "pmix"
            }
            found |= {_PLUGINS[p] for p in plugins if p in _PLUGINS}
            if "pmix3x" in self.holds or any(_PMIX_PLUGIN.match(p) for p in plugins):
                found.add("pmix")
        else:
            found |= {"pmi1"} if "PMI_FD" in self.holds or "libpmi" in linked else set()
            found |= {"pmi2"} if "PMI2_Init" in self.holds or "libpmi2" in linked else set()
        return tuple(sorted(found))

    def relocatable(self, exported: tuple[str, ...] | None) -> bool:
        """Tell whether it finds its files wherever it is put.

        It does if it looks for others relative to itself, if its launcher tells its ranks where
        it is (``OPAL_PREFIX``), or if it needs no file but those of the C library.
        """
        alone = self.followed and not self.closure and not self.plugins
        return self.path in self.values("origin") or "OPAL_PREFIX" in (exported or ()) or alone


def libraries(section: Section) -> tuple[dict[str, list[str]], dict[str, MpiLibrary]]:
    """Return the libraries beside each launcher (the loader's own under ``""``), and all by their paths."""
    beside: dict[str, list[str]] = {}
    known: dict[str, MpiLibrary] = {}
    launcher = ""
    library: MpiLibrary | None = None
    for line in section.lines:
        word, _, rest = line.partition(" ")
        if word == "launcher":
            launcher, library = rest, None
            beside.setdefault(launcher, [])
        elif word == "beside":
            beside.setdefault(launcher, []).append(rest)
        elif word == "library":
            library = known.setdefault(rest, MpiLibrary(rest, whole=section.ok))
        elif library is not None:
            library.said.setdefault(word, []).append(rest)
    return beside, known


def of_launcher(launcher: str, implementation: str, section: Section) -> MpiLibrary | None:
    """Return the library of a launcher: one of its own kind beside it, else the loader's first such one."""
    beside, known = libraries(section)
    for path in (*beside.get(launcher, ()), *beside.get("", ())):
        library = known.get(path)
        if library and library.implementation == implementation:
            return library
    return None


def apart(section: Section) -> tuple[MpiLibrary, ...]:
    """Return the libraries that the probe found without a launcher, in the order in which it looked."""
    beside, known = libraries(section)
    there = {path for launcher, paths in beside.items() if launcher not in {"", APART} for path in paths}
    return tuple(
        known[path] for path in dict.fromkeys(beside.get(APART, ())) if path in known and path not in there
    )


def is_mvapich(launcher: str, section: Section) -> bool:
    """Tell whether a Hydra, which tells the MPICH that it is of, is that of MVAPICH2: its library is."""
    beside, known = libraries(section)
    kinds = {known[path].implementation for path in beside.get(launcher, ()) if path in known}
    return kinds == {"mvapich2"}


def sonames(library: MpiLibrary) -> tuple[str, ...] | None:
    """Return what is loaded with a library, sorted; ``None`` where that could not be followed."""
    return tuple(sorted(library.closure)) if library.followed else None


def folders(library: MpiLibrary) -> tuple[str, ...] | None:
    """Return the folders of a library and of all that it and its components load, its own first."""
    if not library.followed:
        return None
    where = (library.found, *(path for path in library.carried.values() if path))
    return tuple(dict.fromkeys(posixpath.dirname(path) for path in where))


def outside(library: MpiLibrary, prefix: str) -> tuple[str, ...] | None:
    """Return what a library and its components load that is not below the folder that it is installed in."""
    if not library.followed:
        return None
    return tuple(sorted(name for name, path in library.carried.items() if not _below(library, path, prefix)))


def taken(library: MpiLibrary) -> dict[str, tuple[str, ...]] | None:
    """Return what each component loads besides, sorted; ``None`` where that could not be followed."""
    if not library.followed:
        return None
    return {name: tuple(sorted(files)) for name, files in sorted(library.taken.items())}


def places(library: MpiLibrary) -> dict[str, str] | None:
    """Return in which folder each of what it and its components load was found, where it was."""
    if not library.followed:
        return None
    return {name: posixpath.dirname(path) for name, path in sorted(library.carried.items()) if path}


def _below(library: MpiLibrary, path: str, prefix: str) -> bool:
    folder = posixpath.dirname(path)
    places = dict(line.split(" ", 1) for line in library.values("folder") if " " in line)
    real = places.get(folder, folder)
    return bool(path) and is_below(real, prefix)


def ucx(library: MpiLibrary) -> str | None:
    """Return the version of UCX that is loaded with a library, if its libucp names just one."""
    named = set(library.values("ucx"))
    return named.pop() if len(named) == 1 else None


def fabric(library: MpiLibrary) -> str | None:
    """Return the newest version of its interface that the libfabric loaded with a library has."""
    told = [said.split(".") for said in library.values("fabric") if _VERSION.match(said)]
    return ".".join(max(told, key=lambda parts: [int(part) for part in parts])) if told else None


def glibc_needed(library: MpiLibrary, prefix: str) -> str | None:
    """Return the newest C library that it needs, or anything that would be mounted with it.

    Of a library whose prefix the system's own is, all counts; of another, what is the system's stays behind.
    """
    if not library.followed:
        return None
    told = [line.partition(" ") for line in library.values("glibc")]
    names = (
        name
        for name, _, path in told
        if not path
        or path == library.path
        or _below(library, path, prefix)
        or not is_system(posixpath.dirname(path))
    )
    return newest_glibc(tuple(names))
