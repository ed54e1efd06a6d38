"""Find the release of the PMIx library (libpmix) that Slurm's PMIx plugin loads."""

import re
from dataclasses import dataclass

from toolkit import knowledge
from toolkit.knowledge.pmix import release_of
from toolkit.probe.evidence import Section


@dataclass(frozen=True, slots=True)
class PmixLibrary:
    """A libpmix: its path, its release, and the evidence for the release."""

    path: str
    version: str
    evidence: str


def libraries(section: Section) -> tuple[PmixLibrary, ...]:
    """Return every libpmix with a known release, from the ``file`` and ``says`` lines of a section.

    The release in the real file name has precedence over the version text in the library, which may be
    ``5.0.7a1`` for release 5.0.7.
    """
    pmix_libraries: list[PmixLibrary] = []
    path = ""
    for line in (*section.lines, "file "):
        if line.startswith("file "):
            if path and (by_name := knowledge.pmix_of_file(path)):
                pmix_libraries.append(PmixLibrary(path, by_name, "its file name"))
            path = line.removeprefix("file ").strip()
        elif line.startswith("says OpenPMIx ") and path and not knowledge.pmix_of_file(path):
            pmix_libraries.append(
                PmixLibrary(path, line.removeprefix("says OpenPMIx ").strip(), "its own version text")
            )
            path = ""
    return tuple(pmix_libraries)


def server(section: Section, mpi_types: tuple[str, ...]) -> PmixLibrary | None:
    """Return the libpmix that Slurm's PMIx plugin loads, or None if unknown.

    If the plugin's file contains the path of a libpmix, or is linked with a libpmix, the plugin names this
    library. The result is this library, or None if its release is unknown or the plugin names several
    releases.

    If the plugin names no libpmix, the function reads the possible major versions from ``mpi_types``, such as
    5 from ``pmix_v5``. The result is the libpmix with the newest of these major versions that the machine
    has. If ``mpi_types`` has no version, the result is the machine's libpmix, or None if the machine has
    several releases of libpmix.
    """
    all_libraries = libraries(section)
    if named := _plugin_names(section, mpi_types):
        chosen = [library for library in all_libraries if library.path in named]
        is_single = len(chosen) == len(named) and len({library.version for library in chosen}) == 1
        return chosen[0] if is_single else None
    majors = sorted({release_of(name) for name in mpi_types} - {0}, reverse=True)
    for major in majors:
        for library in all_libraries:
            if library.version.split(".")[0] == str(major):
                return library
    if majors or not all_libraries:
        return None
    return all_libraries[0] if len({f.version for f in all_libraries}) == 1 else None


def _plugin_names(section: Section, mpi_types: tuple[str, ...]) -> set[str]:
    """Return the paths of each libpmix that Slurm's newest PMIx plugin names (see :func:`server`)."""
    by_plugin: dict[str, set[str]] = {}
    plugin = ""
    for line in section.lines:
        word, _, rest = line.partition(" ")
        if word == "plugin":
            plugin = rest.rpartition("/")[2]
            by_plugin.setdefault(plugin, set())
        elif word in {"named", "linked"}:
            by_plugin.setdefault(plugin, set()).add(rest)
    offered = {f"mpi_{name}.so" for name in mpi_types}
    usable = {name: paths for name, paths in by_plugin.items() if name in offered} or by_plugin
    newest = max(usable, key=_major, default="")
    return usable.get(newest, set())


def _major(plugin: str) -> int:
    match = re.search(r"_v(\d{1,4})\.so", plugin, re.ASCII)
    return int(match[1]) if match else 0
