"""``truth.json``: facts of hosts and images, and what really happened, cell by cell."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Plan, Request

TRUTH = Path(__file__).parent / "truth.json"
SCHEMA = "toolkit.truth/1"


def place_name(flavour: str, central: str = "") -> str:
    """Return what the facts of a cluster are recorded under: its flavour, and whose MPI stands on it."""
    return f"{flavour} with {central}" if central else flavour


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One launch as it was run, and what became of it.

    ``flavour`` is the key of the host's facts (:func:`place_name`), ``launch`` how it is called in tables
    (``srun`` is srun without ``--mpi``). ``plan`` and ``request``
    are the words in the engine's own form; ``argv`` is the line that ran, with IMAGE for the file. ``start``
    says whether it ran in a batch script or straight from the login node. ``environment`` is what the job
    inherited on top of the host's facts, ``host_changes`` are facts of the host that were changed for the
    cell. ``seen`` counts the outcomes of all tries; ``outcome`` is the most frequent one, and ``sizes``,
    ``exit`` and ``line`` are of the last try that had it. ``fixed_by`` names the cell in which a fix was
    applied.
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
    """What the inspector reads from an image, and what the running container says of itself."""

    facts: ImageFacts
    said: dict[str, Any]


class Truth(msgspec.Struct, kw_only=True):
    """The whole record."""

    schema: str = SCHEMA
    hosts: dict[str, HostFacts] = {}
    images: dict[str, ImageRecord] = {}
    cells: list[Cell] = []


def load(path: Path = TRUTH) -> Truth:
    """Return the record, an empty one where there is no file yet."""
    return msgspec.json.decode(path.read_bytes(), type=Truth) if path.exists() else Truth()


@contextmanager
def changed(path: Path = TRUTH) -> Iterator[Truth]:
    """Lend the record to be changed, and write it whole; one process at a time."""
    lock = path.with_name(f".{path.name}.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        truth = load(path)
        yield truth
        part = path.with_name(f".{path.name}.part")
        part.write_text(encoded(truth))
        part.replace(path)
    lock.unlink(missing_ok=True)


def encoded(truth: Truth) -> str:
    """Return the text of the record: one line a cell, so that changes can be read."""
    plain = msgspec.to_builtins(truth)
    cells = sorted(plain["cells"], key=lambda cell: cell["name"])
    hosts = json.dumps(plain["hosts"], indent=1, sort_keys=True)
    images = json.dumps(plain["images"], indent=1, sort_keys=True)
    rows = ",\n".join(json.dumps(cell, ensure_ascii=False) for cell in cells)
    return f'{{"schema": "{SCHEMA}",\n"hosts": {hosts},\n"images": {images},\n"cells": [\n{rows}\n]}}\n'
