"""Start every image on every flavour of the virtual cluster in every way, and record what really happens.

    python -m tests.matrix.run [--flavour F]… [--image I]… [--launch L]… [--shape 2x1]…
                               [--variant naive|planned|trap|mended]… [--trap-image I]…
                               [--again] [--facts-only] [--held-out FILE]

Cells that are recorded with the same words are not run again. Clusters are called matrix-FLAVOUR and stay up.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.matrix import build
from tests.matrix.images import specs
from tests.matrix.launches import (
    LAUNCHES,
    Launch,
    little_memlock,
    plain,
    planned,
    shape,
    small_shm,
    traps,
)
from tests.matrix.outcome import Seen, classify
from tests.matrix.record import TRUTH, Cell, ImageRecord, changed, load
from tests.matrix.said import QUESTIONS, heard
from toolkit.cli.places import open_runner
from toolkit.cluster import use, virtual
from toolkit.cluster.flavour import flavours
from toolkit.image.inspect import inspect
from toolkit.launch.plan import runtime_of
from toolkit.model.cluster import Cluster
from toolkit.model.facts import HostFacts
from toolkit.probe.probe import probe
from toolkit.report.progress import Progress
from toolkit.run.stage import Parcel, stage

SECONDS = 75
"""Longest that a launch may take. Ranks that work need three; Slurm's libpmi looks for slurm.conf for 60."""

_FOLDER = "/work/ada/matrix"
_SURE = frozenset({"ok", "singletons", "init-failure", "loader-failure", "unavailable"})
_AGAIN = 2
VARIANTS = ("naive", "planned", "trap", "mended")


class Place:
    """A cluster of one flavour, with the images on it; ``name`` where it is another than the matrix's own."""

    def __init__(self, flavour: str, tell: Progress, name: str = "") -> None:
        self.flavour, self.tell = flavour, tell
        self.cluster: Cluster = virtual.up(name or f"matrix-{flavour}", 2, tell, flavour)
        self.runner = open_runner(None, self.cluster.name)
        self.runner.write(f"{_FOLDER}/driver.py", (Path(__file__).parent / "driver.py").read_bytes())

    def facts(self) -> HostFacts:
        """Return what the probe reads; the cluster is called by its flavour alone."""
        return msgspec.structs.replace(probe(self.runner), place=f"cluster {self.flavour}")

    def bring(self, names: Iterable[str]) -> None:
        stage(self.runner, [Parcel.of(build.sif(n), f"{_FOLDER}/{n}.sif") for n in names], self.tell)

    def run(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run jobs one after the other and return what became of each."""
        said = bytearray()
        given = "\n".join(json.dumps(job) for job in jobs).encode() + b"\n"
        words = ("python3", f"{_FOLDER}/driver.py")
        status = use.execute(self.cluster, "login", "ada", words, lambda out, _: said.extend(out), given)
        found = [json.loads(line) for line in said.decode().splitlines()]
        if status or len(found) != len(jobs):
            raise RuntimeError(f"matrix-{self.flavour}: {len(found)} of {len(jobs)} jobs came back, {status}")
        return found

    @contextmanager
    def changed(self, changes: dict[str, Any]) -> Iterator[None]:
        """Make facts of the compute nodes other ones for a while: their /dev/shm; a limit is the script's."""
        nodes, size = self.cluster.hosts[1:], changes.get("shm")
        words = ("sh", "-c", "df --output=size -B1 /dev/shm | tail -n 1")
        before = [self._ask(node, words).strip() for node in nodes] if size else []
        try:
            for node in nodes if size else ():
                self._ask(node, ("mount", "-o", f"remount,size={size}", "/dev/shm"))
            yield
        finally:
            for node, former in zip(nodes, before, strict=False):
                self._ask(node, ("mount", "-o", f"remount,size={former}", "/dev/shm"))

    def _ask(self, node: str, words: tuple[str, ...]) -> str:
        out = bytearray()
        if use.execute(self.cluster, node, "root", words, lambda o, _: out.extend(o)):
            raise RuntimeError(f"{node}: {' '.join(words)} failed")
        return out.decode()

    def said(self, name: str) -> dict[str, Any]:
        """Return what the running container says of itself."""
        out = bytearray()
        words = ("singularity", "exec", "--cleanenv", f"{_FOLDER}/{name}.sif", "sh", "-c", QUESTIONS)
        use.execute(self.cluster, "login", "ada", words, lambda o, _: out.extend(o))
        return heard(out.decode("utf-8", "replace"))


def measure(place: Place, launches: list[Launch], runtime: str) -> list[Cell]:
    """Run launches; those that end in a way that may be a race, twice more."""
    tries = {launch.name: [seen] for launch, seen in _once(place, launches, runtime, 0)}
    for number in range(1, _AGAIN + 1):
        again = [launch for launch in launches if _is_odd(launch, tries[launch.name])]
        for launch, seen in _once(place, again, runtime, number):
            tries[launch.name].append(seen)
    return [_cell(launch, tries[launch.name], runtime) for launch in launches]


def _is_odd(launch: Launch, tries: list[Seen]) -> bool:
    """Tell whether one more try is worth its time: some launchers and clients meet in a race."""
    outcomes = {seen.outcome for seen in tries}
    if outcomes == {"hang"} and (launch.plan.inside or len(tries) > 1):
        return False  # each costs a minute; a launcher that misses a program in the image waits for ever
    if len(outcomes) > 1 or not outcomes <= _SURE:
        return True
    return outcomes == {"ok"} and launch.launch in {"mpirun-host", "mpirun-container"} and len(tries) == 1


def _once(place: Place, launches: list[Launch], runtime: str, number: int) -> list[tuple[Launch, Seen]]:
    jobs = [
        {
            "id": re.sub(r"[^\w.-]+", "-", f"{launch.name}-{number}"),
            "script": launch.script(f"{_FOLDER}/{launch.image}.sif", runtime),
            "nodes": launch.request.nodes,
            "ranks_per_node": launch.request.ranks_per_node,
            "seconds": SECONDS,
            "direct": not launch.request.batch,
        }
        for launch in launches
    ]
    ended = place.run(jobs) if jobs else []
    want = [launch.request.nodes * launch.request.ranks_per_node for launch in launches]
    return [
        (launch, classify(done["text"], done["exit"], done["timed_out"], ranks))
        for launch, done, ranks in zip(launches, ended, want, strict=True)
    ]


def _cell(launch: Launch, tries: list[Seen], runtime: str) -> Cell:
    counted = Counter(seen.outcome for seen in tries)
    outcome = counted.most_common(1)[0][0]
    shown = next(seen for seen in reversed(tries) if seen.outcome == outcome)
    return launch.cell(
        argv=launch.argv(runtime),
        outcome=outcome,
        sizes=shown.sizes,
        exit=shown.exit,
        line=_plain(shown.line) if outcome != "ok" else "",
        silent=shown.silent,
        seen=dict(counted),
    )


def _plain(line: str) -> str:
    """Leave out what is of this run alone: process numbers and times."""
    line = re.sub(r"\[(\w+):0*\d+(:\d+:\d+)?\]", r"[\1]", line)
    return re.sub(r"\[\d{9,}\.\d+\]\s*|\bpid \d+", "", line)


def wanted(
    arguments: argparse.Namespace, place: Place, host: HostFacts, name: str, facts: Any
) -> list[Launch]:
    """Return the launches of one image that were asked for."""
    found: list[Launch] = []
    variants = arguments.variant or VARIANTS
    if "naive" in variants:
        found += plain(name, place.flavour, host)
    if "planned" in variants:
        found += planned(name, place.flavour, host, facts)
    if {"trap", "mended"} & set(variants) and name in (arguments.trap_image or ()):
        speaks = (facts.mpi.interfaces if facts.mpi else None) or ()
        launch = "srun-pmix" if "pmix" in speaks else "srun-pmi2"
        for family in (traps, small_shm, little_memlock):
            found += [t for t in family(name, place.flavour, host, launch, facts) if t.variant in variants]
    found = [launch for launch in found if not arguments.launch or launch.launch in arguments.launch]
    return [launch for launch in found if not arguments.shape or shape(launch.request) in arguments.shape]


def fixed(cells: list[Cell]) -> list[Cell]:
    """Name for every failing cell the cell in which the engine's words for the same launch work."""
    works = {_kind(c): c.name for c in cells if _mends(c)}
    mended = []
    for cell in cells:
        by = works.get(_kind(cell), "") if cell.outcome != "ok" and cell.variant in {"naive", "trap"} else ""
        mended.append(msgspec.structs.replace(cell, fixed_by=by))
    return mended


def _kind(cell: Cell) -> tuple[str, ...]:
    return (cell.flavour, cell.image, cell.launch, shape(cell.request), cell.start, cell.trap)


def _mends(cell: Cell) -> bool:
    return cell.variant in {"planned", "mended"} and cell.outcome == "ok"


def record(
    path: Path, flavour: str, host: HostFacts, name: str, image: ImageRecord, cells: list[Cell]
) -> None:
    """Put an image's cells into the record, in the place of those of the same names."""
    with changed(path) as truth:
        if not same_image(truth.images.get(name), image):
            truth.cells = [cell for cell in truth.cells if cell.image != name]
        truth.hosts[flavour] = host
        truth.images[name] = image
        new = {cell.name for cell in cells}
        truth.cells = fixed([cell for cell in truth.cells if cell.name not in new] + cells)


def same_image(recorded: ImageRecord | None, image: ImageRecord) -> bool:
    """Tell whether cells that were recorded are of this very file."""
    return recorded is not None and recorded.facts.digest == image.facts.digest


def unique(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the different ones, in their order."""
    found: list[dict[str, Any]] = []
    for change in changes:
        if change not in found:
            found.append(change)
    return found


def run_image(arguments: argparse.Namespace, place: Place, host: HostFacts, name: str) -> None:
    path = arguments.held_out if specs()[name].held_out else arguments.truth
    known = load(path)
    place.bring([name])
    facts = msgspec.structs.replace(inspect(build.sif(name)), path=f"{name}.sif")
    image = ImageRecord(facts=facts, said=place.said(name))
    runtime = runtime_of(host)
    there = {cell.name: cell.argv for cell in known.cells}
    todo = [] if arguments.facts_only else wanted(arguments, place, host, name, facts)
    if not arguments.again and same_image(known.images.get(name), image):
        todo = [launch for launch in todo if there.get(launch.name) != launch.argv(runtime)]
    place.tell.step(f"{place.flavour} {name}: {len(todo)} launches")
    cells: list[Cell] = []
    for changes in ({}, *unique(launch.host_changes for launch in todo if launch.host_changes)):
        with place.changed(changes):
            cells += measure(place, [x for x in todo if x.host_changes == changes], runtime)
    held = specs()[name].held_out
    cells = [msgspec.structs.replace(cell, held_out=held) for cell in cells]
    record(path, place.flavour, host, name, image, cells)
    if not held:
        place.tell.step(f"{place.flavour} {name}: {dict(Counter(cell.outcome for cell in cells))}")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix.run", description=__doc__)
    parser.add_argument("--flavour", action="append", choices=list(flavours()))
    parser.add_argument("--image", action="append", choices=list(specs()))
    parser.add_argument("--launch", action="append", choices=LAUNCHES)
    parser.add_argument("--shape", action="append", help="NODESxRANKS, as in 2x1")
    parser.add_argument("--variant", action="append", choices=VARIANTS)
    parser.add_argument("--trap-image", action="append", choices=list(specs()))
    parser.add_argument("--again", action="store_true", help="run recorded cells once more")
    parser.add_argument("--facts-only", action="store_true", help="read facts anew and run nothing")
    parser.add_argument("--truth", type=Path, default=TRUTH, help="the record")
    parser.add_argument(
        "--held-out", type=Path, help="where cells of held-out images are kept; else they are not run"
    )
    arguments = parser.parse_args(words)
    tell = Progress(verbose=False, quiet=False)
    names = [n for n in arguments.image or specs() if arguments.held_out or not specs()[n].held_out]
    for flavour in arguments.flavour or flavours():
        place = Place(flavour, tell)
        host = place.facts()
        for name in names:
            if build.sif(name).is_file():
                run_image(arguments, place, host, name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
