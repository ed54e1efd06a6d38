"""Compare the speed of trainers and other programs: python -m tests.benchmarks.train.run [--peers] [--rounds
N] [--page FILE].
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docker import DockerClient

from tests.benchmarks.image.timed import load
from tests.benchmarks.train.cases import BATON, DATA, FEW, INSIDE, TURN, TURNS, Case, cases, in_turns
from tests.benchmarks.train.page import figures, page
from tests.benchmarks.train.peers import peer_cases
from tests.benchmarks.train.result import Figure, Result
from toolkit.data import cache_dir
from toolkit.errors import CheckFailed, Missing, ToolkitError
from toolkit.model.progress import Silent
from toolkit.run.docker.builder import BUILDER, contained_apptainer
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.engine import connect

ROOT = Path(__file__).parents[3]
_MARK = "bench:"
_MEMORY = 6 << 30
_SECONDS = 900.0
_FEW = 12_000
_MPIRUN = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # Without this setting, Open MPI tries a system call that containers may not use, and prints a warning.
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}
_EXEC = ("apptainer", "-q", "exec", "-u", "--cleanenv", "--no-home")


def measure(recipe: str, sif: Path, rounds: int, every: Sequence[Case], only: str) -> Result:
    client, image = connect(timeout=600), _image(recipe)
    digits = cache_dir() / "data" / "mnist"
    if not digits.is_dir():
        raise Missing(f"MNIST is not in {digits}", fix="`toolkit data get mnist`")
    if any(case.sif for case in every) and not sif.is_file():
        raise Missing(f"{sif}: no such file", fix=f"`toolkit image sif {recipe} -o {sif}`")
    contained_apptainer(client, Silent())
    began, figures = datetime.now(UTC), dict[str, list[Figure]]()
    with contextlib.closing(client), tempfile.TemporaryDirectory() as folder:
        few = shortened(digits, Path(folder), _FEW)
        binds = {str(Path(__file__).parent / "inside"): INSIDE, str(digits): DATA, str(few): FEW}
        for number in range(1, rounds + 1):
            for started in in_turns(every):
                if not any(only in case.name for case in started):
                    continue
                found = timed(client, image, sif, binds, started)
                for case, figure in ((c, f) for c in started for f in found[c.name]):
                    figures.setdefault(case.name, []).append(figure)
                    _say(f"round {number}/{rounds}  {case.name}: {figure.rate:,.2f}")
    return Result(
        image=", ".join(dict.fromkeys(_image(case.recipe) if case.recipe else image for case in every)),
        started=began.isoformat(timespec="seconds"),
        processors=os.cpu_count() or 1,
        figures=figures,
    )


def _image(recipe: str) -> str:
    return f"toolkit/{recipe}:latest"


def timed(
    client: DockerClient, image: str, sif: Path, binds: dict[str, str], started: tuple[Case, ...]
) -> dict[str, list[Figure]]:
    """Run one case with all its copies at once, or two cases that take turns; return their measurements."""
    busy = load()
    with tempfile.TemporaryDirectory() as baton, ThreadPoolExecutor(4) as pool:
        taken = list(binds.items()), (baton if len(started) > 1 else "")
        runs = [
            (case, pool.submit(_told, client, *_boxed(image, sif, taken, case, me), case.name))
            for me, case in enumerate(started)
            for _ in range(case.copies)
        ]
        if started[0].held:
            deal_turns(Path(baton), sum(case.copies for case in started), [run for _, run in runs])
        told = [(case.name, run.result()) for case, run in runs]
    return {
        case.name: _figures(case, [one for name, one in told if name == case.name], busy) for case in started
    }


def deal_turns(
    baton: Path, programs: int, runs: Sequence["Future[object]"], turns: int = TURNS, seconds: float = TURN
) -> None:
    """When all programs are ready, write whose turn it is to ``baton``; end all turns if a program exits."""
    while len(list(baton.glob("ready-*"))) < programs and not any(run.done() for run in runs):
        time.sleep(0.1)
    beside = baton / "turn.new"
    for number in range(2 * turns):
        beside.write_text(str(number % 2))
        beside.replace(baton / "turn")
        wait(runs, seconds, FIRST_COMPLETED)
    beside.write_text("over")
    beside.replace(baton / "turn")


def _figures(case: Case, told: list[dict[str, Any]], busy: float) -> list[Figure]:
    rates = [sum(together) for together in zip(*(one["rates"] for one in told), strict=True)]
    if not case.together:
        rates = [sorted(rates)[len(rates) // 2]]
    return [Figure(rate, busy, told[0].get("accuracy")) for rate in rates]


def _boxed(
    image: str, sif: Path, taken: tuple[list[tuple[str, str]], str], case: Case, me: int
) -> tuple[Box, tuple[str, ...]]:
    """Return the container and the command of a case; mount the folder ``baton`` if the case takes turns."""
    given, baton = taken
    image = _image(case.recipe) if case.recipe else image
    env = {**_MPIRUN, **({"SLURM_CPUS_PER_TASK": str(case.cores)} if case.cores else {})}
    binds = {host: f"{inside}:ro" for host, inside in given}
    words = case.words
    if baton:
        binds[baton] = BATON
        held = ("python", f"{INSIDE}/held.py") if case.held else ()
        words = ("env", f"BENCH_BATON={BATON}", f"BENCH_ME={me}", *held, *words)
    if not case.sif:
        return Box(image, binds=binds, env=env, memory=_MEMORY, timeout=_SECONDS), words
    mounts = [word for mount in binds.values() for word in ("--bind", _same_place(mount))]
    words = (*_EXEC, *mounts, f"/target/{sif.name}", *words)
    binds[str(sif.parent.resolve())] = "/target:ro"
    return Box(BUILDER, binds=binds, env=env, memory=_MEMORY, timeout=_SECONDS, nested=True), words


def _same_place(mount: str) -> str:
    """Return the Apptainer bind that mounts a container's folder at the same path in the SIF."""
    inside, *rights = mount.split(":")
    return ":".join((inside, inside, *rights))


def shortened(digits: Path, folder: Path, count: int) -> Path:
    """Copy a data set to ``folder`` with only the first ``count`` training images."""
    for path in digits.iterdir():
        content = path.read_bytes()
        if path.name.startswith("train"):
            sizes = 4 * content[3]
            each = (len(content) - 4 - sizes) // int.from_bytes(content[4:8])
            kept = content[4 + sizes : 4 + sizes + count * each]
            content = content[:4] + count.to_bytes(4) + content[8 : 4 + sizes] + kept
        (folder / path.name).write_bytes(content)
    return folder


def _told(client: DockerClient, box: Box, words: tuple[str, ...], name: str) -> dict[str, Any]:
    ran = run_once(client, box, words)
    found = [line.removeprefix(_MARK) for line in ran.lines if line.startswith(_MARK)]
    if not ran.ok or not found:
        raise CheckFailed(f"{name} failed", detail=ran.lines[-12:])
    told: dict[str, Any] = json.loads(found[-1])
    return told


def _say(text: str) -> None:
    print(f"bench-train: {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Measure, and write build/bench/train.json and the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--recipe", default="tf2.21-cpu")
    options.add_argument("--sif", type=Path, help="its SIF  [default: build/images/RECIPE.sif]")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--epochs", type=int, default=4, help="of dense and convolutional networks")
    options.add_argument("--only", default="", help="cases with this in their name; no page then")
    options.add_argument("--peers", action="store_true", help="the programs in PyTorch and JAX")
    options.add_argument("--page", type=Path, help="also write the figures into this page")
    asked = options.parse_args()
    sif = asked.sif or ROOT / "build" / "images" / f"{asked.recipe}.sif"
    try:
        every = (peer_cases if asked.peers else cases)(asked.epochs)
        found = measure(asked.recipe, sif, asked.rounds, every, asked.only)
    except ToolkitError as error:
        print(f"bench-train: {error}", *error.detail, error.fix, sep="\n  ", file=sys.stderr)
        return error.code
    if asked.only:
        return 0
    target = ROOT / "build" / "bench" / f"{'peers' if asked.peers else 'train'}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(found.encoded())
    print(figures(found))
    if asked.page:
        asked.page.write_text(page(found, asked.page.read_text("utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
