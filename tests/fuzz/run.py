"""Run many fuzz cases in several processes, save the inputs that fail, and print the results.

    python -m tests.fuzz.run --count 10000 --seed 1 --keep build/fuzz

The same seed makes the same cases. A case that kills its process counts as a fault.
"""

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz import case, hostile

_ADDRESSES = 4 << 30
"""Limit of a process's address space in bytes, far above normal use."""
_SILENT = 10 * case.SECONDS
"""Seconds without a report after which a process counts as hung and is killed."""


def worker(numbers: list[int], seed: int, root: Path, pipe: Connection) -> None:
    _settle(root)
    for number in numbers:
        folder = root / "case"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        pipe.send(number)
        pipe.send(case.run(number, seed, folder))
    pipe.send(None)


def _settle(root: Path) -> None:
    """Make this process write all files below ``root``, and limit its memory."""
    for name in ("home", "cache", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "secret").write_text(f"ID={hostile.SECRET}\nVERSION_ID=1\nOpen MPI v{hostile.SECRET}\n")
    os.environ |= {
        "HOME": str(root / "home"),
        "TOOLKIT_CACHE_DIR": str(root / "cache"),
        "TMPDIR": str(root / "tmp"),
        "DOCKER_HOST": f"unix://{root}/no-engine.sock",
    }
    tempfile.tempdir = None
    os.chdir(root)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Hand:
    """A worker process and its remaining cases."""

    def __init__(self, numbers: Iterable[int], seed: int, root: Path) -> None:
        self.waiting, self.seed, self.root = list(numbers), seed, root
        self.done: list[case.Outcome] = []
        self._start()

    def _start(self) -> None:
        context = get_context("fork")
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(target=worker, args=(self.waiting, self.seed, self.root, other))
        self.process.start()
        other.close()
        self.now, self.heard, self.ended = -1, time.monotonic(), False

    def listen(self) -> None:
        """Read the process's reports; if a case killed the process, start a new process at the next case."""
        try:
            while self.pipe.poll(0.05):
                self._take(self.pipe.recv())
            if not self.ended and time.monotonic() - self.heard > _SILENT:
                self.process.kill()
        except EOFError:
            self.process.join()
            if not self.ended:
                died = f"its process ended with {self.process.exitcode}"
                self._take(case.Outcome(self.now, "?", "died", time.monotonic() - self.heard, 0, died))
                self._start()

    def _take(self, told: "int | case.Outcome | None") -> None:
        self.heard = time.monotonic()
        if told is None:
            self.ended = True
        elif isinstance(told, int):
            self.now = told
        else:
            self.done.append(told)
            self.waiting = [n for n in self.waiting if n != told.number]


def fuzz(count: int, seed: int, keep: Path, hands: int = 2, *, first: int = 0) -> list[case.Outcome]:
    """Run ``count`` cases and return their results; if a case has a fault, save its input in ``keep``."""
    case.seeds.flat(), case.seeds.bundles(), case.seeds.host(), case.seeds.image()
    with tempfile.TemporaryDirectory(prefix="toolkit-fuzz.") as work:
        numbers = range(first, first + count)
        team = [Hand(numbers[n::hands], seed, Path(work) / str(n)) for n in range(hands) if numbers[n::hands]]
        try:
            while not all(hand.ended for hand in team):
                for hand in team:
                    hand.listen()
        finally:
            for hand in team:
                hand.process.kill()
                hand.process.join()
    outcomes = sorted((o for hand in team for o in hand.done), key=lambda o: o.number)
    for outcome in outcomes:
        if outcome.fault:
            folder = keep / f"{seed}-{outcome.number}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            case.make(outcome.number, seed, folder)
            (folder / "fault.txt").write_text(f"{outcome.kind}: {outcome.came}\n{outcome.fault}\n")
    return outcomes


def summary(outcomes: list[case.Outcome], seed: int, seconds: float) -> str:
    faults = [o for o in outcomes if o.fault]
    lines = [f"{len(outcomes)} cases of seed {seed} in {seconds:.0f} s: {len(faults)} faults"]
    kinds = Counter((o.kind, o.came) for o in outcomes)
    for kind in sorted({o.kind for o in outcomes}):
        came = ", ".join(f"{n} {c}" for (k, c), n in kinds.most_common() if k == kind)
        lines.append(f"  {kind:<22} {came}")
    for title, key in (("slowest", "seconds"), ("most memory", "grown")):
        worst = sorted(outcomes, key=lambda o: -getattr(o, key))[:3]
        shown = (f"{o.number} ({o.kind}) {o.seconds:.1f} s, {o.grown >> 20} MiB" for o in worst)
        lines.append(f"  {title}: {'; '.join(shown)}")
    lines += [f"  FAULT {o.number} ({o.kind}): {o.fault.strip().splitlines()[-1][:200]}" for o in faults[:50]]
    return "\n".join(lines)


def main() -> int:
    """Run the cases that the command line selects; return 1 if a case has a fault, else 0."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--count", type=int, default=10_000)
    asked.add_argument("--first", type=int, default=0)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--hands", type=int, default=os.cpu_count() or 1)
    asked.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    given = asked.parse_args()
    begun = time.monotonic()
    outcomes = fuzz(given.count, given.seed, given.keep, given.hands, first=given.first)
    print(summary(outcomes, given.seed, time.monotonic() - begun))
    whole = len(outcomes) == given.count
    return 0 if whole and not any(o.fault for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
