"""Start every image on every flavour of the virtual cluster in all launch modes, and record the outcomes.

    python -m tests.matrix.run [--flavour F]… [--central I]… [--image I]… [--launch L]… [--shape 2x1]…
                               [--variant V]… [--trap-image I]…
                               [--again] [--facts-only] [--held-out FOLDER]

Variants are ``naive``, ``planned``, ``trap`` and ``mended``. On each flavour, the program first uses the
nodes' own MPI, and then each MPI that images.toml marks as a centre's MPI. --central selects the centre's
MPIs by their images ('' selects none). The program skips launches that are recorded with the same plan. The
clusters are called matrix-FLAVOUR, and stay up.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tests.matrix import build
from tests.matrix.central import central, prefix
from tests.matrix.images import specs
from tests.matrix.launches import (
    LAUNCHES,
    PROGRAM,
    Launch,
    as_root,
    little_memlock,
    plain,
    planned,
    shape,
    small_shm,
    traps,
    with_central,
    without_sharing,
)
from tests.matrix.mending import by_engine, mended
from tests.matrix.outcome import Seen, classify
from tests.matrix.place import Place
from tests.matrix.record import TRUTH, Cell, ImageRecord, as_started, changed, image_record, load
from toolkit.cluster.flavour import flavours
from toolkit.image.inspect import inspect
from toolkit.job.rank_view import view_of_command
from toolkit.launch.jobscript.plan import runtime_of
from toolkit.model.facts import HostFacts
from toolkit.report.progress import Progress

SECONDS = 75
"""Time limit of a launch in seconds; working ranks need three seconds."""
PATIENCE = 240
"""Time limit in seconds for ranks whose libpmi waits for a slurm.conf: it waits a minute, several times."""
_WAITS = "cannot stat file /etc/slurm"

_SURE = frozenset({"ok", "singletons", "init-failure", "loader-failure", "unavailable"})
_AGAIN = 2
VARIANTS = ("naive", "planned", "trap", "mended")


def measure(place: Place, launches: list[Launch], runtime: str) -> list[Cell]:
    """Run launches and return their cells; repeat a launch up to two times if its outcome may be chance."""
    tries = {launch.name: [seen] for launch, seen in _once(place, launches, runtime, [])}
    waiting = [launch for launch in launches if _still_waits(tries[launch.name][0])]
    tries |= {launch.name: [seen] for launch, seen in _once(place, waiting, runtime, waiting)}
    for number in range(1, _AGAIN + 1):
        again = [launch for launch in launches if _is_odd(launch, tries[launch.name])]
        for launch, seen in _once(place, again, runtime, waiting, number):
            tries[launch.name].append(seen)
    return [_cell(launch, tries[launch.name], runtime) for launch in launches]


def _still_waits(seen: Seen) -> bool:
    """Return whether the driver stopped a launch whose ranks were in a wait that would time out later."""
    return seen.outcome == "hang" and _WAITS in seen.line


def _is_odd(launch: Launch, tries: list[Seen]) -> bool:
    """Return whether to try a launch again, because its outcome may be chance."""
    outcomes = {seen.outcome for seen in tries}
    if outcomes == {"hang"} and (launch.plan.inside or len(tries) > 1):
        return False  # a hang takes a minute: repeat it at most once
    if len(outcomes) > 1 or not outcomes <= _SURE:
        return True
    return outcomes == {"ok"} and launch.launch in {"mpirun-host", "mpirun-container"} and len(tries) == 1


def _once(
    place: Place, launches: list[Launch], runtime: str, patient: list[Launch], number: int = 0
) -> list[tuple[Launch, Seen]]:
    jobs = [
        {
            "id": re.sub(r"[^\w.-]+", "-", f"{launch.name}-{number}"),
            "script": place.before + launch.script(place.word(launch.image), runtime),
            "nodes": launch.request.nodes,
            "ranks_per_node": launch.request.ranks_per_node,
            "seconds": PATIENCE if launch in patient else SECONDS,
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
    """Return a line without values that differ between runs: process numbers and times."""
    line = re.sub(r"\[(\w+):0*\d+(:\d+:\d+)?\]", r"[\1]", line)
    return re.sub(r"\[\d{9,}\.\d+\]\s*|\bpid \d+", "", line)


def wanted(
    arguments: argparse.Namespace, place: Place, host: HostFacts, name: str, facts: Any
) -> list[Launch]:
    found: list[Launch] = []
    facts = as_started(facts, host)
    variants = arguments.variant or VARIANTS
    if place.central:
        found += with_central(name, place.name, host, facts, f"{prefix(place.central)}/bin")
    else:
        found += (*plain(name, place.name, host), *planned(name, place.name, host, facts))
    found = [launch for launch in found if launch.variant in variants]
    if {"trap", "mended"} & set(variants) and name in arguments.trap_image:
        speaks = (facts.mpi.interfaces if facts.mpi else None) or ()
        launch = "srun-pmix" if "pmix" in speaks else "srun-pmi2"
        families = (without_sharing,) if place.podman else (traps, as_root, small_shm, little_memlock)
        for family in families:
            found += [t for t in family(name, place.name, host, launch, facts) if t.variant in variants]
    found = [launch for launch in found if not arguments.launch or launch.launch in arguments.launch]
    found = [launch for launch in found if not arguments.trap or launch.trap == arguments.trap]
    return [launch for launch in found if not arguments.shape or shape(launch.request) in arguments.shape]


def record(
    folder: Path, place: str, host: HostFacts, name: str, image: ImageRecord, cells: list[Cell]
) -> None:
    with changed(folder) as truth:
        if not same_image(truth.images.get(name), image):
            truth.cells = [cell for cell in truth.cells if cell.image != name]
        truth.hosts[place] = host
        truth.images[name] = image
        new = {cell.name for cell in cells}
        truth.cells = [cell for cell in truth.cells if cell.name not in new] + cells
        here = [cell for cell in truth.cells if (cell.flavour, cell.image) == (place, name)]
        known = {cell.name: cell for cell in mended(here, by_engine(truth))}
        truth.cells = [known.get(cell.name, cell) for cell in truth.cells]


def same_image(recorded: ImageRecord | None, image: ImageRecord) -> bool:
    """Return whether the recorded cells are valid for this image, even if it was rebuilt.

    The cells are valid if the image has the same MPI, libraries, C library and Python. A security update of
    the C library, and the output of a program that started as a single rank, do not matter.
    """
    return recorded is not None and _lasting(recorded.said) == _lasting(image.said)


def _lasting(said: dict[str, Any]) -> dict[str, Any]:
    release = str(said.get("glibc", "")).rpartition(" ")[2]
    return {**said, "glibc": release, "probe": None}


def unique(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for change in changes:
        if change not in found:
            found.append(change)
    return found


def run_image(arguments: argparse.Namespace, place: Place, host: HostFacts, name: str) -> None:
    folder = arguments.held_out if specs()[name].held_out else arguments.truth
    known = load(folder)
    place.bring([name])
    facts = inspect(build.sif(name), view=view_of_command((PROGRAM,)))
    facts = msgspec.structs.replace(facts, path=f"{name}.sif")
    image = image_record(facts, place.said(name))
    runtime = runtime_of(host)
    there = {cell.name: cell.argv for cell in known.cells}
    todo = [] if arguments.facts_only else wanted(arguments, place, host, name, facts)
    if not arguments.again and same_image(known.images.get(name), image):
        todo = [launch for launch in todo if there.get(launch.name) != launch.argv(runtime)]
    place.tell.step(f"{place.name} {name}: {len(todo)} launches")
    cells: list[Cell] = []
    for changes in ({}, *unique(launch.host_changes for launch in todo if launch.host_changes)):
        with place.changed(changes):
            these = [launch for launch in todo if launch.host_changes == changes]
            cells += measure(place, these, runtime)
    held = specs()[name].held_out
    cells = [msgspec.structs.replace(cell, held_out=held) for cell in cells]
    record(folder, place.name, host, name, image, cells)
    if not held:
        place.tell.step(f"{place.name} {name}: {dict(Counter(cell.outcome for cell in cells))}")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix.run", description=__doc__)
    parser.add_argument("--flavour", action="append", choices=list(flavours()))
    centrals = [name for name, spec in specs().items() if spec.central]
    parser.add_argument("--central", action="append", choices=["", *centrals], default=[])
    parser.add_argument("--image", action="append", choices=list(specs()))
    parser.add_argument("--launch", action="append", choices=("bind", *LAUNCHES))
    parser.add_argument("--shape", action="append", help="NODESxRANKS, as in 2x1")
    parser.add_argument("--variant", action="append", choices=VARIANTS)
    parser.add_argument("--trap-image", action="append", choices=list(specs()), default=[])
    parser.add_argument("--cluster", default="", help="another cluster than matrix-FLAVOUR")
    parser.add_argument(
        "--runtime", default="", choices=["", "ch-run", "apptainer"], help="start images by another one"
    )
    parser.add_argument("--trap", default="", help="of the traps this one alone")
    parser.add_argument("--again", action="store_true", help="run recorded cells once more")
    parser.add_argument("--facts-only", action="store_true", help="read facts anew and run nothing")
    parser.add_argument("--truth", type=Path, default=TRUTH, help="the folder of the record")
    parser.add_argument(
        "--held-out",
        type=Path,
        help="the folder in which cells of held-out images are kept; without it they are not run",
    )
    arguments = parser.parse_args(words)
    tell = Progress(verbose=False, quiet=False)
    names = [n for n in arguments.image or specs() if arguments.held_out or not specs()[n].held_out]
    for flavour in arguments.flavour or flavours():
        place = Place(flavour, tell, arguments.cluster, arguments.runtime)
        there = [name for name in centrals if flavour in specs()[name].central]
        for provider in arguments.central or ["", *there]:
            if provider not in ("", *there):
                continue
            with central(place, provider):
                host = place.facts()
                for name in names:
                    if build.sif(name).is_file():
                        run_image(arguments, place, host, name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
