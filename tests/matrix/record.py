"""Read and write the record in ``truth/``: facts of hosts and images, and the outcome of each launch.

``truth/clusters/NAME.json`` has the facts of one cluster and its launches (cells). ``truth/images.json`` has
the facts of all images. Recording a launch again changes only the file of its cluster.
"""

import fcntl
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import Plan, Request

TRUTH = Path(__file__).parent / "truth"
SCHEMA = "toolkit.truth/2"


def place_name(flavour: str, central: str = "") -> str:
    """Return the key of a cluster's facts: its flavour, and the image whose MPI is the centre's MPI."""
    return f"{flavour} with {central}" if central else flavour


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One recorded launch and its outcome.

    ``flavour`` is the key of the host's facts (:func:`place_name`). ``launch`` is the launch's name in
    tables; ``srun`` is srun without ``--mpi``. ``plan`` and ``request`` describe the launch in the engine's
    types. ``argv`` is the command that ran, with IMAGE in place of the SIF. ``start`` says whether the
    launch ran in a batch script or directly from the login node. ``environment`` has the variables that
    the job inherited in addition to the variables in the host's facts. ``host_changes`` has the host's facts
    that the launch changed, with their new values. ``seen`` counts the outcomes of all tries. ``outcome``
    is the most frequent outcome; ``sizes``, ``exit`` and ``line`` are from the last try with this outcome.
    ``fixed_by`` is the name of the cell with the fix.
    """

    name: str
    image: str
    flavour: str
    launch: str
    variant: str
    plan: Plan
    request: Request
    argv: str
    outcome: str
    sizes: tuple[int, ...] = ()
    exit: int | None = 0
    line: str = ""
    silent: bool = False
    seen: dict[str, int] = {}
    start: str = "batch"
    trap: str = ""
    environment: dict[str, str] = {}
    host_changes: dict[str, Any] = {}
    fixed_by: str = ""
    held_out: bool = False


class ImageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that the inspector reads from an image, and the answers of the running container."""

    facts: ImageFacts
    said: dict[str, Any]


class Truth(msgspec.Struct, kw_only=True):
    hosts: dict[str, HostFacts] = {}
    images: dict[str, ImageRecord] = {}
    cells: list[Cell] = []


class _Cluster(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    schema: str
    name: str
    host: HostFacts
    cells: list[Cell]


class _Images(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    schema: str
    images: dict[str, ImageRecord] = {}


_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'\\]*")


def image_record(facts: ImageFacts, said: dict[str, Any]) -> ImageRecord:
    """Return the record of an image without the addresses of package indexes, which MPICH wheels contain."""
    asked = said | {
        name: _without_addresses(said[name]) for name in ("mpichversion", "probe") if name in said
    }
    return ImageRecord(facts=without_address(facts), said=asked)


def as_started(facts: ImageFacts, host: HostFacts) -> ImageFacts:
    """Return the facts for the image format that the host's runtime starts: an archive, a folder or a SIF."""
    name = host.runtime.name if host.runtime else ""
    if name == "ch-run":
        return msgspec.structs.replace(facts, format="sandbox")
    if name != "podman":
        return facts
    absent = {**facts.absent, "compression": "it is no SIF"}
    return msgspec.structs.replace(facts, format="docker-archive", compression=None, absent=absent)


def without_address(facts: ImageFacts) -> ImageFacts:
    """Return the facts without addresses in the library strings of MPIs.

    The library string of an MPICH wheel contains the address of a package index, which no rule needs.
    """

    def plain(mpi: ImageMpi) -> ImageMpi:
        return msgspec.structs.replace(mpi, library_string=_without_addresses(mpi.library_string))

    others = tuple(plain(mpi) for mpi in facts.other_mpis)
    return msgspec.structs.replace(facts, mpi=plain(facts.mpi) if facts.mpi else None, other_mpis=others)


def _without_addresses(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_without_addresses(line) for line in answer]
    return _ADDRESS.sub("", answer) if isinstance(answer, str) else answer


def load(folder: Path = TRUTH) -> Truth:
    found = sorted((folder / "clusters").glob("*.json"))
    clusters = [msgspec.json.decode(path.read_bytes(), type=_Cluster) for path in found]
    clusters.sort(key=lambda cluster: cluster.name)
    path = folder / "images.json"
    images = msgspec.json.decode(path.read_bytes(), type=_Images).images if path.exists() else {}
    cells = [cell for cluster in clusters for cell in cluster.cells]
    return Truth(
        hosts={cluster.name: cluster.host for cluster in clusters},
        images=images,
        cells=sorted(cells, key=lambda cell: cell.name),
    )


@contextmanager
def changed(folder: Path = TRUTH) -> Iterator[Truth]:
    """Yield the record for changes, and then write the files that differ; only one process at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        truth = load(folder)
        yield truth
        _write(folder, encoded(truth))
    lock.unlink(missing_ok=True)


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        if path.exists() and path.read_text() == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_text(text)
        part.replace(path)
    for path in (folder / "clusters").glob("*.json"):
        if f"clusters/{path.name}" not in files:
            path.unlink()


def encoded(truth: Truth) -> dict[str, str]:
    """Return the text of each file by its path in the folder; each cell has its own line, for short diffs."""
    files = {"images.json": _images(truth.images)}
    for name, host in sorted(truth.hosts.items()):
        cells = [cell for cell in truth.cells if cell.flavour == name]
        files[f"clusters/{name.replace(' ', '-')}.json"] = _cluster(name, host, cells)
    return files


def _images(images: dict[str, ImageRecord]) -> str:
    facts = json.dumps(msgspec.to_builtins(images), indent=1, sort_keys=True)
    return f'{{"schema": "{SCHEMA}",\n"images": {facts}}}\n'


_NEW: dict[str, dict[str, Any]] = {
    "plan": {"program": "mpi", "starter": ""},
    "request": {"program": None, "command": [], "joins": [], "says": {}},
}
"""Fields that the oldest records lack, with their default values; a cell omits fields with these values."""


def _line(cell: Cell) -> dict[str, Any]:
    line: dict[str, Any] = msgspec.to_builtins(cell)
    for part, fields in _NEW.items():
        line[part] = {n: v for n, v in line[part].items() if n not in fields or list_of(v) != fields[n]}
    return line


def list_of(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _cluster(name: str, host: HostFacts, cells: list[Cell]) -> str:
    facts = json.dumps(msgspec.to_builtins(host), indent=1, sort_keys=True)
    lines = [_line(cell) for cell in sorted(cells, key=lambda cell: cell.name)]
    rows = ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    return (
        f'{{"schema": "{SCHEMA}",\n"name": {json.dumps(name)},\n"host": {facts},\n"cells": [\n{rows}\n]}}\n'
    )
