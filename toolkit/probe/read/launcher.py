"""Read which MPI launchers are on PATH, and what the first one hands to its ranks."""

import re

from toolkit import knowledge
from toolkit.model.facts import HostMpi
from toolkit.probe.evidence import Section

_FAMILIES = (
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE)\)\s+v?(\d[\w.]*)")),
    ("intelmpi", re.compile(r"Intel\(R\) MPI Library.*?Version\s+(\d[\w.]*)")),
    ("mpich", re.compile(r"^\s*Version:\s+(\d[\w.]*)")),
)
_NAME = re.compile(r"[A-Za-z_]\w*(=|$)", re.ASCII)


def launchers(section: Section, environment: Section) -> tuple[HostMpi, ...]:
    """Read the ``path``, ``real`` and ``says`` lines; one entry for each program, whatever its names."""
    found: dict[str, HostMpi] = {}
    for path, real, said in _programs(section):
        if real in found or path.endswith("/srun"):
            continue
        implementation, version = _identify(said)
        first = not found
        found[real] = HostMpi(
            implementation=implementation,
            version=version,
            launcher=path,
            leaks=leaks(environment) if first else None,
            pmix=pmix_server(environment) if first else None,
        )
    return tuple(found.values())


def leaks(section: Section) -> tuple[str, ...] | None:
    """Return the variables that name the launcher's own installation; ``None`` if it started nothing."""
    given = variables(section)
    # Every launcher tells a rank its server; without that line no rank has run.
    if not section.ok or not any(name.startswith("PMIX_") for name in given):
        return None
    return tuple(name for name in knowledge.mpi().variables.paths if name in given)


def pmix_server(section: Section) -> str | None:
    """Return the version of the launcher's PMIx server, which it tells each rank (``PMIX_VERSION``)."""
    return variables(section).get("PMIX_VERSION") if section.ok else None


def variables(section: Section) -> dict[str, str]:
    """Return the variables that were told; the value is empty where the name came alone."""
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
    return [(path, real, "\n".join(said)) for path, real, said in programs]


def _identify(said: str) -> tuple[str, str | None]:
    for name, pattern in _FAMILIES:
        if found := re.search(pattern.pattern, said, re.MULTILINE | re.DOTALL):
            return name, found[1]
    return "unknown", None
