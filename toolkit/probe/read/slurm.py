"""Parse the output of Slurm's commands."""

import re

from toolkit.model.facts import SlurmFacts
from toolkit.probe.evidence import Section, Sections

_VERSION = re.compile(r"^slurm(?:-wlm)?\s+(\d[\w.\-]*)", re.IGNORECASE)
_NONE = {"(null)": "none"}
"""The text that ``scontrol show config`` of Slurm 24.11 prints for ``MpiDefault=none``."""
_COUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([KMG]?)(?!\d)", re.ASCII)
_THOUSANDS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
"""The suffixes with which ``sinfo`` shortens numbers, and their factors: 1024 nodes are ``1K``, 1536 nodes
are ``1.50K``.
"""


def version(section: Section) -> str | None:
    """Return Slurm's version from ``sinfo --version``, such as ``24.11.5`` for ``slurm-wlm 24.11.5``."""
    return next((match[1] for line in section.lines if (match := _VERSION.match(line))), None)


def mpi_types(section: Section) -> tuple[str, ...] | None:
    """Return the MPI plugin names that ``srun --mpi=list`` prints. Return None if srun fails or lists none.

    srun prints a heading and one plugin per line, then the PMIx versions on one line: ``specific pmix plugin
    versions available: pmix_v4,pmix_v5``. Old releases print ``srun: MPI types are...``, with ``srun: `` at
    the start of each line. Releases up to 17.02 also print ``mpi/`` before each name.
    """
    if not section.ok:
        return None
    names: list[str] = []
    for raw in section.lines:
        line = raw.removeprefix("srun: ").strip().removeprefix("mpi/")
        if line.startswith("specific pmix plugin versions"):
            names += re.split(r"[,\s]+", line.partition(":")[2].strip())
        elif re.fullmatch(r"[a-z0-9_]+", line):
            names.append(line)
    return tuple(dict.fromkeys(n for n in names if n)) or None


def settings(section: Section) -> dict[str, str]:
    """Return the settings of Slurm from lines such as ``MpiDefault              = pmix``."""
    pairs = (line.partition("=") for line in section.lines if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def partitions(section: Section) -> tuple[tuple[str, ...] | None, int | None]:
    """Return two values: the names of the partitions, of which the default is first, and the number of nodes
    in the largest partition.
    """
    rows = [line.split("|") for line in section.lines if line.count("|") >= 2]
    if not section.ok or not rows:
        return None, None
    rows.sort(key=lambda row: not row[0].endswith("*"))
    nodes: dict[str, int] = {}
    for row in rows:
        name = row[0].rstrip("*")
        nodes[name] = nodes.get(name, 0) + (number(row[1]) or 0)
    return tuple(nodes), max(nodes.values()) or None


def number(text: str) -> int | None:
    """Return a number that ``sinfo`` prints, such as 36 for ``36+`` and 1024 for ``1K``; None for any other
    text.
    """
    match = _COUNT.match(text)
    return int(float(match[1]) * _THOUSANDS[match[2]]) if match else None


def slurm(sections: Sections) -> SlurmFacts | None:
    """Return the facts about Slurm, or None if Slurm's commands are missing or do not answer."""
    release = version(sections.get("slurm", Section("slurm")))
    if release is None:
        return None
    configured = settings(sections.get("slurm-config", Section("slurm-config")))
    names, nodes = partitions(sections.get("partitions", Section("partitions")))
    return SlurmFacts(
        version=release,
        mpi_types=mpi_types(sections.get("mpi-list", Section("mpi-list"))),
        mpi_default=_NONE.get(configured.get("MpiDefault", ""), configured.get("MpiDefault")),
        nodes=nodes,
        partitions=names,
        settings=configured,
    )
