"""Find the MPI library of each launcher on a host, and the files that a launch must mount together with the
library.
"""

import posixpath
import re
from dataclasses import dataclass, field

from toolkit.folders import is_below, is_system
from toolkit.probe.evidence import Section
from toolkit.probe.read.machine import newest_glibc

NO_LAUNCHER = "-"
"""The probe prints this text instead of a launcher's path, above its list of libraries without a launcher."""
_C_LIBRARY = re.compile(
    r"(?:lib(?:c|m|dl|rt|pthread|util|resolv|anl|nsl)\.so\.\d+|ld-linux\S*|linux-vdso\S*)$"
)
_PLUGINS = {"s1": "pmi1", "s2": "pmi2"}
"""The launch interface of each Open MPI component that uses Slurm's PMI-1 or PMI-2."""
_PMIX_PLUGIN = re.compile(r"(?:ext\d|pmix\d)x$")


_MAKERS = {"MVAPICH": "mvapich2", "CRAY MPICH": "cray", "ParaStation": "parastation"}
"""MPI implementations derived from MPICH. The keys are texts that identify the implementation's library."""
_DEVICE = re.compile(r"ch[34]:[a-z0-9, ]{2,40}\Z")
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}\Z", re.ASCII)
_COMPONENT = re.compile(r"mca_([a-z]+)_(\w+?)(?:_component|\.so)\Z")


@dataclass(frozen=True, slots=True)
class MpiLibrary:
    """An MPI library and its lines in the probe's output.

    ``answers`` maps the first word of a line to the rest of each line that starts with this word.
    """

    path: str
    answers: dict[str, list[str]] = field(default_factory=dict)
    whole: bool = True
    """Whether the query for MPI libraries succeeded. If not, lines about this library may be missing."""

    def values(self, word: str) -> list[str]:
        return self.answers.get(word, [])

    @property
    def found_path(self) -> str:
        """The path at which the probe found the library, which may be a link to ``path``."""
        return next(iter(self.values("found")), self.path)

    @property
    def holds(self) -> set[str]:
        """The texts in the library, or in Open MPI's libopen-pal, that identify the MPI and its launch
        interfaces.
        """
        return set(self.values("holds"))

    @property
    def is_followed(self) -> bool:
        """Whether the probe listed all libraries that this library needs."""
        return "yes" in self.values("followed") and (self.whole or "yes" in self.values("described"))

    @property
    def needs(self) -> dict[str, str]:
        """The paths of the libraries that the loader loads with this library. The keys are sonames; the path
        of a missing library is empty.
        """
        return {name: path for name, _, path in (line.partition(" ") for line in self.values("needs"))}

    @property
    def components(self) -> dict[str, tuple[str, ...]]:
        """The names of Open MPI's components (plugins) that connect ranks or send messages. The keys are MCA
        frameworks, such as ``btl``.
        """
        names_by_framework: dict[str, set[str]] = {}
        for word in ("has", "component"):
            for name in self.values(word):
                if component := _COMPONENT.match(name):
                    names_by_framework.setdefault(component[1], set()).add(component[2])
        return {framework: tuple(sorted(names)) for framework, names in sorted(names_by_framework.items())}

    @property
    def component_libraries(self) -> dict[str, dict[str, str]]:
        """The libraries that each component (plugin of Open MPI) loads, without the C library and without
        the libraries that the MPI library itself loads.

        The keys are component names; each value maps sonames to paths.
        """
        paths_by_component: dict[str, dict[str, str]] = {}
        for line in self.values("takes"):
            file, name, path = (*line.split(" ", 2), "")[:3]
            component = _COMPONENT.match(file)
            if component and name and not _C_LIBRARY.match(name) and name not in {self.soname, *self.closure}:
                paths_by_component.setdefault(f"{component[1]}_{component[2]}", {})[name] = path
        return paths_by_component

    @property
    def loaded_libraries(self) -> dict[str, str]:
        """The paths of the libraries that the loader loads with this MPI library or its components. The keys
        are sonames.
        """
        return {
            **{n: p for paths in self.component_libraries.values() for n, p in paths.items()},
            **self.closure,
        }

    @property
    def plugins(self) -> str | None:
        """The folder of the MPI's component files; None if the MPI has no component files."""
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
        """MPICH's device (its communication layer) with its network modules, such as ``ch4:ofi,ucx``."""
        device = next(iter(self.values("device")), None)
        return ",".join(device.replace(",", " ").split()) if device and _DEVICE.match(device) else None

    @property
    def own_shm(self) -> bool | None:
        """Whether MPICH's device ch4 has a shared-memory transport; None for other devices and MPIs."""
        named = self.implementation != "intelmpi" and (self.device or "").startswith("ch4")
        return "MPIDI_POSIX_am_" in self.holds if named else None

    @property
    def soname(self) -> str | None:
        """The soname by which programs load the library, such as ``libmpi.so.40`` for
        ``libmpi.so.40.30.5``.

        The library's file may contain several sonames. The result is the soname with which the file's name
        begins. None if the file's name begins with none of the sonames, or with several of them.
        """
        files = {posixpath.basename(self.path), posixpath.basename(self.found_path)}
        fitting = [n for n in self.values("names") if any(f == n or f.startswith(f"{n}.") for f in files)]
        return fitting[0] if len(fitting) == 1 else None

    @property
    def closure(self) -> dict[str, str]:
        """The paths of the libraries that the loader loads with this library, except the C library. The keys
        are sonames.
        """
        return {name: path for name, path in self.needs.items() if not _C_LIBRARY.match(name)}

    @property
    def interfaces(self) -> tuple[str, ...] | None:
        """The launch interfaces that the library can use; None if the probe did not list all libraries
        that this library needs.
        """
        if not self.is_followed:
            return None
        linked = {name.split(".so")[0] for name in self.needs}
        faces = {"pmix"} if "libpmix" in linked else set()
        if self.implementation == "openmpi":
            plugins = {
                m[2] for c in self.values("component") if (m := _COMPONENT.match(c)) and m[1] == "pmix"
            }
            faces |= {_PLUGINS[p] for p in plugins if p in _PLUGINS}
            if "pmix3x" in self.holds or any(_PMIX_PLUGIN.match(p) for p in plugins):
                faces.add("pmix")
        else:
            faces |= {"pmi1"} if "PMI_FD" in self.holds or "libpmi" in linked else set()
            faces |= {"pmi2"} if "PMI2_Init" in self.holds or "libpmi2" in linked else set()
        return tuple(sorted(faces))

    def is_relocatable(self, variables: tuple[str, ...] | None) -> bool:
        """Return whether the library works if a launch mounts it into another folder. ``variables`` lists the
        variables that the launcher sets for ranks.

        A library works in any folder if it searches for files relative to its own folder, if its launcher
        sets ``OPAL_PREFIX`` for ranks, or if it has no component files and needs only the C library.
        """
        alone = self.is_followed and not self.closure and not self.plugins
        return self.path in self.values("origin") or "OPAL_PREFIX" in (variables or ()) or alone


def libraries(section: Section) -> tuple[dict[str, list[str]], dict[str, MpiLibrary]]:
    """Return two mappings: from each launcher to the paths of the libraries beside it, and from each path to
    its library.

    In the first mapping, the key ``""`` has the libraries in the loader's cache, and the key
    :data:`NO_LAUNCHER` has the libraries in folders without a launcher.
    """
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
            library.answers.setdefault(word, []).append(rest)
    return beside, known


def of_launcher(launcher: str, implementation: str, section: Section) -> MpiLibrary | None:
    """Return a launcher's MPI library, or None.

    The result is the first library of the MPI ``implementation`` beside the launcher. If there is no such
    library, the result is the first library of this MPI in the loader's cache.
    """
    beside, known = libraries(section)
    for path in (*beside.get(launcher, ()), *beside.get("", ())):
        library = known.get(path)
        if library and library.implementation == implementation:
            return library
    return None


def separate_libraries(section: Section) -> tuple[MpiLibrary, ...]:
    """Return the libraries that the probe found in folders without a launcher, in the order of the search.
    The result contains no library that is also beside a launcher.
    """
    beside, known = libraries(section)
    existing = {
        path for launcher, paths in beside.items() if launcher not in {"", NO_LAUNCHER} for path in paths
    }
    return tuple(
        known[path]
        for path in dict.fromkeys(beside.get(NO_LAUNCHER, ()))
        if path in known and path not in existing
    )


def is_mvapich(launcher: str, section: Section) -> bool:
    """Return whether all MPI libraries beside a Hydra launcher are MVAPICH2. Hydra is the launcher of MPICH
    and of MVAPICH2, and reports MPICH's release in both.
    """
    beside, known = libraries(section)
    kinds = {known[path].implementation for path in beside.get(launcher, ()) if path in known}
    return kinds == {"mvapich2"}


def sonames(library: MpiLibrary) -> tuple[str, ...] | None:
    """Return the sonames of the libraries that the loader loads with an MPI library, except the C library;
    None if the list is incomplete.
    """
    return tuple(sorted(library.closure)) if library.is_followed else None


def folders(library: MpiLibrary) -> tuple[str, ...] | None:
    """Return the folder of an MPI library, then the folders of all libraries that the loader loads with the
    MPI library; None if the list is incomplete.
    """
    if not library.is_followed:
        return None
    where = (library.found_path, *(path for path in library.loaded_libraries.values() if path))
    return tuple(dict.fromkeys(posixpath.dirname(path) for path in where))


def loaded_from_outside(library: MpiLibrary, prefix: str) -> tuple[str, ...] | None:
    """Return the sonames of libraries outside the folder ``prefix`` that the loader loads with an MPI
    library; None if the list is incomplete.
    """
    if not library.is_followed:
        return None
    return tuple(
        sorted(name for name, path in library.loaded_libraries.items() if not _below(library, path, prefix))
    )


def component_needs(library: MpiLibrary) -> dict[str, tuple[str, ...]] | None:
    """Return the sonames of each component's libraries (see :attr:`MpiLibrary.component_libraries`). Return
    None if the probe did not list all libraries that the MPI library needs.
    """
    if not library.is_followed:
        return None
    return {name: tuple(sorted(files)) for name, files in sorted(library.component_libraries.items())}


def places(library: MpiLibrary) -> dict[str, str] | None:
    """Return the folder of each library that the loader loads with an MPI library, by soname; None if the
    list is incomplete.
    """
    if not library.is_followed:
        return None
    return {name: posixpath.dirname(path) for name, path in sorted(library.loaded_libraries.items()) if path}


def _below(library: MpiLibrary, path: str, prefix: str) -> bool:
    folder = posixpath.dirname(path)
    places = dict(line.split(" ", 1) for line in library.values("folder") if " " in line)
    real = places.get(folder, folder)
    return bool(path) and is_below(real, prefix)


def ucx(library: MpiLibrary) -> str | None:
    """Return the version of the UCX that the loader loads with a library; None if the probe found no version
    or several versions.
    """
    named = set(library.values("ucx"))
    return named.pop() if len(named) == 1 else None


def fabric(library: MpiLibrary) -> str | None:
    """Return the newest interface version of the libfabric that the loader loads with a library, such as
    ``1.7`` for ``FABRIC_1.7``; None if the probe found no version.
    """
    versions = [version.split(".") for version in library.values("fabric") if _VERSION.match(version)]
    return ".".join(max(versions, key=lambda parts: [int(part) for part in parts])) if versions else None


def glibc_needed(library: MpiLibrary, prefix: str) -> str | None:
    """Return the newest glibc version that any of these libraries needs: the MPI library, and the libraries
    that toolkit mounts with it.

    ``prefix`` is the installation folder of the MPI. The function ignores libraries in the system's folders
    outside ``prefix``, because toolkit does not mount them.
    """
    if not library.is_followed:
        return None
    entries = [line.partition(" ") for line in library.values("glibc")]
    names = (
        name
        for name, _, path in entries
        if not path
        or path == library.path
        or _below(library, path, prefix)
        or not is_system(posixpath.dirname(path))
    )
    return newest_glibc(tuple(names))
