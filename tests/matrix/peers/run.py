"""Start programs without MPI on the virtual cluster in all launch modes, and record the outcomes.

    python -m tests.matrix.peers.run [--image I]… [--only TEXT] [--again] [--jobs N] [--seconds N]

The program skips launches that are recorded with the same plan.
"""

import argparse
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.matrix import build
from tests.matrix.outcome import Seen
from tests.matrix.peers.launches import FOLDER, OF_IMAGE, PROGRAMS, ProgramLaunch, wanted
from tests.matrix.peers.outcome import classify
from tests.matrix.place import Place
from tests.matrix.record import Cell, ImageRecord, changed, load
from toolkit.cluster import use
from toolkit.image.inspect import inspect
from toolkit.launch.jobscript.plan import runtime_of
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.report.progress import Progress
from toolkit.run.stage import Parcel, stage

TRUTH = Path(__file__).parent / "truth"
_SURE = {"ok", "singletons", "wrong-size", "init-failure", "hang"}
"""Outcomes for which one try is enough; launches with other outcomes are repeated."""
_BATCH = 4


def sif(name: str) -> Path:
    own = build.sif(name)
    return own if own.is_file() else build.FOLDER.parent / "images" / f"{name}.sif"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix.peers.run", description=__doc__)
    parser.add_argument("--image", action="append", choices=list(OF_IMAGE))
    parser.add_argument("--flavour", default="pmix")
    parser.add_argument("--only", default="", help="a regular expression for names of cells")
    parser.add_argument("--again", action="store_true", help="run recorded cells once more")
    parser.add_argument("--jobs", type=int, default=2, help="jobs at a time")
    parser.add_argument("--seconds", type=int, default=30, help="longest that ranks may take once started")
    arguments = parser.parse_args(words)
    place = Place(arguments.flavour, Progress(verbose=False, quiet=False))
    stage(
        place.runner,
        [Parcel.of(p, f"{FOLDER}/programs/{p.name}") for p in sorted(PROGRAMS.iterdir()) if p.is_file()],
        place.tell,
    )
    place.runner.write(f"{FOLDER}/driver.py", (Path(__file__).parent / "driver.py").read_bytes())
    host = place.facts()
    for name in arguments.image or OF_IMAGE:
        if sif(name).is_file():
            _run_image(arguments, place, host, name)
    return 0


def _run_image(arguments: argparse.Namespace, place: Place, host: HostFacts, name: str) -> None:
    there = f"{FOLDER}/{name}.sif"
    stage(place.runner, [Parcel.of(sif(name), there)], place.tell)
    facts = msgspec.structs.replace(inspect(sif(name)), path=f"{name}.sif")
    runtime = runtime_of(host)
    known = {cell.name: cell.argv for cell in load(TRUTH).cells}
    todo = [
        launch
        for launch in wanted(name, arguments.flavour, host, facts)
        if re.search(arguments.only, launch.name)
        and (arguments.again or known.get(launch.name) != launch.argv(runtime))
    ]
    place.tell.step(f"{name}: {len(todo)} launches")
    for batch in _batches(todo):
        with place.changed({"shm": batch[0].trap.shm} if batch[0].trap.shm else {}):
            tries = _tried(arguments, place, batch, there, runtime, facts)
        _record(place.name, host, name, facts, [_cell(x, tries[x.name], runtime) for x in batch])
        place.tell.step(f"{name}: {dict(Counter(tries[x.name][0].outcome for x in batch))}")


def _batches(todo: list[ProgramLaunch]) -> Iterator[list[ProgramLaunch]]:
    """Yield groups of launches that may run at the same time; a launch that resizes /dev/shm runs alone."""
    plain = [launch for launch in todo if not launch.trap.shm]
    yield from (plain[at : at + _BATCH] for at in range(0, len(plain), _BATCH))
    yield from ([launch] for launch in todo if launch.trap.shm)


def _tried(
    arguments: argparse.Namespace,
    place: Place,
    batch: list[ProgramLaunch],
    there: str,
    runtime: str,
    facts: ImageFacts,
) -> dict[str, list[Seen]]:
    tries: dict[str, list[Seen]] = {launch.name: [] for launch in batch}
    again = batch
    for number in range(2):
        jobs = [_job(launch, there, runtime, facts, arguments.seconds, number) for launch in again]
        for launch, done in zip(again, _ended(place, jobs, arguments.jobs), strict=True):
            want = launch.request.nodes * launch.request.ranks_per_node
            tries[launch.name].append(classify(done["text"], done["exit"], done["timed_out"], want))
        again = [launch for launch in batch if tries[launch.name][0].outcome not in _SURE]
        if not again:
            break
    return tries


def _job(
    launch: ProgramLaunch, there: str, runtime: str, facts: ImageFacts, seconds: int, number: int
) -> dict[str, object]:
    name = re.sub(r"[^\w-]+", "-", f"{launch.name}-{number}")
    return {
        "id": name,
        "script": launch.script(there, f"{FOLDER}/runs/{name}", runtime, facts),
        "nodes": launch.request.nodes,
        "ranks_per_node": launch.request.ranks_per_node,
        "seconds": seconds,
    }


def _ended(place: Place, jobs: list[dict[str, object]], at_a_time: int) -> list[dict[str, object]]:
    said = bytearray()
    given = "\n".join(json.dumps(job) for job in jobs).encode() + b"\n"
    words = ("python3", f"{FOLDER}/driver.py", str(at_a_time))
    status = use.execute(place.cluster, "login", "ada", words, lambda out, _: said.extend(out), given)
    found = {done["id"]: done for done in map(json.loads, said.decode().splitlines())}
    if status or len(found) != len(jobs):
        raise RuntimeError(f"{len(found)} of {len(jobs)} jobs came back, {status}")
    return [found[job["id"]] for job in jobs]


def _cell(launch: ProgramLaunch, tries: list[Seen], runtime: str) -> Cell:
    counted = Counter(seen.outcome for seen in tries)
    outcome = counted.most_common(1)[0][0]
    shown = next(seen for seen in reversed(tries) if seen.outcome == outcome)
    return launch.cell(
        runtime,
        outcome=outcome,
        sizes=shown.sizes,
        exit=shown.exit,
        line=shown.line if outcome != "ok" else "",
        silent=shown.silent,
        seen=dict(counted),
    )


def _record(place: str, host: HostFacts, name: str, facts: ImageFacts, cells: list[Cell]) -> None:
    with changed(TRUTH) as truth:
        truth.hosts[place] = host
        truth.images[name] = ImageRecord(facts=facts, said={})
        new = {cell.name for cell in cells}
        truth.cells = [cell for cell in truth.cells if cell.name not in new] + cells


if __name__ == "__main__":
    if shutil.which("docker") is None:
        sys.exit("no docker engine")
    sys.exit(main(sys.argv[1:]))
