"""Call each command with every kind of garbage in each file argument, and find wrong answers."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.full.garbage.call import SECONDS, Outcome, call
from tests.full.garbage.kinds import Garbage, make
from tests.full.garbage.slots import HERE, Slot
from tests.unit.image.sifs import DATA, sif
from tests.unit.report.trainings import job_folder

_LONGEST = 600
"""Largest allowed number of characters in a message."""
_EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"
_STEP = re.compile(r"\d\d:\d\d:\d\d .*|    .*|hint: .*")
"""Pattern of lines that may be around the error message: progress, quoted lines, and hints."""


class Wrong(NamedTuple):
    slot: str
    kind: str
    why: str
    said: str

    def __str__(self) -> str:
        return f"{self.slot:<34} {self.kind:<18} {self.why:<40} {self.said[-150:]!r}"


def answers(slot: Slot, folder: Path) -> Iterator[tuple[Garbage, Outcome]]:
    _place(folder)
    (folder / "g").mkdir()
    for garbage in make(folder / "g", slot.suffix):
        if slot.writes and garbage.path == "/":
            continue
        shutil.rmtree(folder / "studies", ignore_errors=True)
        with pytest.MonkeyPatch.context() as patch:
            for name, below in (
                ("HOME", ""),
                ("TMPDIR", "t"),
                ("XDG_CACHE_HOME", "c"),
                ("XDG_CONFIG_HOME", "o"),
                ("XDG_STATE_HOME", "s"),
            ):
                patch.setenv(name, str(folder / "home" / below))
            patch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
            yield garbage, call([*slot.command.split(), *_filled(slot, garbage)], folder)


def _filled(slot: Slot, garbage: Garbage) -> list[str]:
    return [word.replace(HERE, garbage.path) for word in slot.words]


def fault(slot: Slot, garbage: Garbage, outcome: Outcome) -> str:
    """Return why an answer is wrong; empty for a right answer."""
    if "Traceback" in outcome.errors or "error: unexpected" in outcome.errors:
        return "a traceback, or one in disguise"
    if garbage.kind in slot.valid:
        return ""
    if outcome.seconds > SECONDS:
        return f"not ended in {SECONDS:.0f} s"
    if outcome.asked:
        return f"asks first: {outcome.asked.splitlines()[0][:60]}"
    if outcome.code not in slot.codes:
        return f"exit {outcome.code}"
    return _fault_of_message(garbage, outcome.errors)


def _fault_of_message(garbage: Garbage, errors: str) -> str:
    lines = errors.splitlines()
    said = [line for line in lines if line.startswith("error: ")]
    if len(said) != 1 or any(not _STEP.fullmatch(line) for line in lines if line not in said):
        return f"not one line: {len(lines)} lines"
    if len(said[0]) > _LONGEST:
        return f"a message of {len(said[0])} letters"
    if garbage.shown not in said[0]:
        return "does not name the file"
    return ""


def wrong(slot: Slot, folder: Path) -> tuple[int, list[Wrong]]:
    found, count = [], 0
    for garbage, outcome in answers(slot, folder):
        count += 1
        if why := fault(slot, garbage, outcome):
            found.append(Wrong(slot.name, garbage.kind, why, outcome.errors))
    return count, found


def _place(folder: Path) -> None:
    """Make the valid files that the calls name beside the garbage."""
    (folder / "home" / "t").mkdir(parents=True)
    (folder / "good.sif").write_bytes(sif((DATA / "tiny.gzip").read_bytes()))
    shutil.copy(_EVIDENCE / "virtual-cluster-nodes.txt", folder / "facts.txt")
    (folder / "train.py").write_text("import torch\nloss = torch.ones(1).sum()\nloss.backward()\n")
    job_folder(folder / "run")
