"""The facts of a host that an earlier launch asked for, kept in the cache folder for some minutes."""

import hashlib
import os
import re
import time
from collections.abc import Callable

import msgspec

from toolkit import hints
from toolkit.data import shipped_folder
from toolkit.errors import BadInput, CheckFailed
from toolkit.probe.asking import NodeChoice, command
from toolkit.probe.bundle import Bundle, read
from toolkit.probe.evidence import TIMED_OUT
from toolkit.run.command import Command, Runner

VARIABLE = "TOOLKIT_FACTS_SECONDS"
"""The variable with the number of seconds for which a launch uses the facts of a host again."""
_SECONDS = 600
_FOLDER = "hosts"
_MOST = 20
"""About 40 kB each, more for a cluster with many kinds of nodes."""
_UNANSWERED = f"@rc {TIMED_OUT}\n"
_STATE_SECONDS = 20.0
_STATE = re.compile(r"^toolkit-state:([0-9a-f]{64})$", re.MULTILINE)


class _Kept(msgspec.Struct, frozen=True):
    """The raw answer of a host, when toolkit asked (seconds since the epoch), and the state of the host."""

    raw: str
    asked: float
    state: str


class HostMemory:
    """Asks a host for its facts, unless it answered some minutes ago and has the same state since.

    ``age`` is the age of the facts in seconds, ``None`` if toolkit probed the host now.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds_of(os.environ.get(VARIABLE)) if seconds is None else seconds
        self.age: float | None = None

    def gather(self, runner: Runner, asked: NodeChoice, probe: Callable[[], Bundle]) -> Bundle:
        """Return the facts that the host gave before, or the facts that ``probe`` asks for now."""
        state = _state(runner) if self._seconds else ""
        if not state:
            return probe()
        name = _name(runner, asked)
        kept = hints.recall(_FOLDER, name, _Kept)
        if kept and kept.state == state and 0 <= (age := time.time() - kept.asked) < self._seconds:
            try:
                found = read(kept.raw, runner.place.rpartition("@")[2], asked)
            except CheckFailed:
                return probe()
            self.age = age
            return found
        now = time.time()
        found = probe()
        # What did not answer in time may answer the next time.
        if found.groups and not found.silent and _UNANSWERED not in found.raw:
            hints.keep(_FOLDER, name, _Kept(found.raw, now, state), _MOST)
        return found


def forget() -> None:
    """Forget the facts of all hosts, because a job has failed or a launch is refused."""
    hints.drop(_FOLDER)


def seconds_of(text: str | None) -> int:
    """Return the seconds that the variable says.

    Raises:
        BadInput: if the variable does not contain a number of seconds.
    """
    if not text:
        return _SECONDS
    if not (text.isascii() and text.isdecimal() and len(text) < 7):
        raise BadInput(f"{VARIABLE}: {text!r} is not a number of seconds", fix="0 asks the host each time")
    return int(text)


def _state(runner: Runner) -> str:
    """Return a hash over what decides the answers of a host; empty if it cannot be had."""
    folder = shipped_folder("containers")
    # With the PATH of the probe, which finds programs that a login shell adds.
    script = b"".join((folder / name).read_bytes() for name in ("login-path.sh", "machine-state.sh"))
    done = runner.run(Command.of("sh", "-s", stdin=script, timeout=_STATE_SECONDS))
    found = _STATE.search(done.text) if done.ok else None
    return found[1] if found else ""


def _name(runner: Runner, asked: NodeChoice) -> str:
    """Return the name of an answer: the host, and the words and scripts of the question."""
    question = command(asked)
    parts = (runner.place, question.words, hashlib.sha256(question.stdin or b"").hexdigest())
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
