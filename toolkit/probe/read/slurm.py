"""Read what Slurm's commands print."""

import re

from toolkit.model.facts import SlurmFacts
from toolkit.probe.evidence import Section, Sections

_VERSION = re.compile(r"^slurm(?:-wlm)?\s+(\d[\w.\-]*)", re.IGNORECASE)
_NONE = {"(null)": "none"}
"""How ``scontrol show config`` of Slurm 24.11 writes ``MpiDefault=none``."""
_COUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([KMG]?)(?!\d)", re.ASCII)
_THOUSANDS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
"""How ``sinfo`` shortens numbers: 1024 nodes are ``1K``, 1536 are ``1.50K``."""


def version(section: Section) -> str | None:
    """Read ``sinfo --version``: ``slurm-wlm 24.11.5``."""
    return next((found[1] for line in section.lines if (found := _VERSION.match(line))), None)


def mpi_types(section: Section) -> tuple[str, ...] | None:
    """Read ``srun --mpi=list``.

    The plugins are listed one a line below a heading; the versions of PMIx follow on a separate line:
    ``specific pmix plugin versions available: pmix_v4,pmix_v5``. Old releases print ``srun: MPI types
    are...`` with ``srun: `` before each line, up to 17.02 with ``mpi/`` before each name.
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
    """Read ``scontrol show config``: ``MpiDefault              = pmix``."""
    pairs = (line.partition("=") for line in section.lines if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def partitions(section: Section) -> tuple[tuple[str, ...] | None, int | None]:
    """Read ``sinfo -o '%P|%D|…'``: the partitions, the default one first, and their numbers of nodes."""
    rows = [line.split("|") for line in section.lines if line.count("|") >= 2]
    if not section.ok or not rows:
        return None, None
    rows.sort(key=lambda row: not row[0].endswith("*"))
    nodes: dict[str, int] = {}
    for row in rows:
        name = row[0].rstrip("*")
        nodes[name] = nodes.get(name, 0) + (number(row[1]) or 0)
    return tuple(nodes), max(nodes.values()) or None


def number(said: str) -> int | None:
    """Read a number of ``sinfo``; a sign may follow the number: ``36+``."""
    found = _COUNT.match(said)
    return int(float(found[1]) * _THOUSANDS[found[2]]) if found else None


def slurm(sections: Sections) -> SlurmFacts | None:
    """Combine the answers; ``None`` if Slurm's commands do not exist or do not answer."""
    found = version(sections.get("slurm", Section("slurm")))
    if found is None:
        return None
    configured = settings(sections.get("slurm-config", Section("slurm-config")))
    names, nodes = partitions(sections.get("partitions", Section("partitions")))
    return SlurmFacts(
        version=found,
        mpi_types=mpi_types(sections.get("mpi-list", Section("mpi-list"))),
        mpi_default=_NONE.get(configured.get("MpiDefault", ""), configured.get("MpiDefault")),
        nodes=nodes,
        partitions=names,
        settings=configured,
    )
