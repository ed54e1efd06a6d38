"""Cache the facts about a host, by default for 10 minutes, so that launches need not probe the host again."""

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
"""The environment variable that says for how many seconds launches use the cached facts about a host."""
_SECONDS = 600
_FOLDER = "hosts"
_MOST = 20
"""Maximum number of cached answers. An answer has 40 kB, or more if a cluster has many kinds of nodes."""
_UNANSWERED = f"@rc {TIMED_OUT}\n"
_STATE_SECONDS = 20.0
_STATE = re.compile(r"^toolkit-state:([0-9a-f]{64})$", re.MULTILINE)


class _Kept(msgspec.Struct, frozen=True):
    """The probe's output for a host, the time of the probe in Unix seconds, and the hash from ``_state``."""

    raw: str
    asked: float
    state: str


class HostMemory:
    """A cache for the facts about hosts.

    :meth:`gather` uses a host's cached answer if the answer is less than ``seconds`` seconds old and the host
    has not changed since the probe. ``age`` is the age in seconds of the cached answer that :meth:`gather`
    used, or None if it used no cached answer.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds_of(os.environ.get(VARIABLE)) if seconds is None else seconds
        self.age: float | None = None

    def gather(self, runner: Runner, choice: NodeChoice, probe: Callable[[], Bundle]) -> Bundle:
        """Return the facts about a host from the cache, or from ``probe``, which probes the host."""
        state = _state(runner) if self._seconds else ""
        if not state:
            return probe()
        name = _name(runner, choice)
        cached = hints.recall(_FOLDER, name, _Kept)
        if cached and cached.state == state and 0 <= (age := time.time() - cached.asked) < self._seconds:
            try:
                bundle = read(cached.raw, runner.place.rpartition("@")[2], choice)
            except CheckFailed:
                return probe()
            self.age = age
            return bundle
        now = time.time()
        bundle = probe()
        # Do not cache an incomplete answer, because the next probe may give a complete answer.
        if bundle.groups and not bundle.silent and _UNANSWERED not in bundle.raw:
            hints.keep(_FOLDER, name, _Kept(bundle.raw, now, state), _MOST)
        return bundle


def forget() -> None:
    """Remove the cached facts of all hosts.

    toolkit calls this function when a job fails or toolkit refuses a launch, because the cached facts may be
    wrong.
    """
    hints.drop(_FOLDER)


def seconds_of(text: str | None) -> int:
    """Return the number of seconds in the value of :data:`VARIABLE`; for an empty value, the default (600 s).

    Raises:
        BadInput: if the value is not a number of seconds.
    """
    if not text:
        return _SECONDS
    if not (text.isascii() and text.isdecimal() and len(text) < 7):
        raise BadInput(
            f"{VARIABLE}: {text!r} is not a number of seconds",
            fix="set a whole number up to 999999; with 0, toolkit probes the host for each launch",
        )
    return int(text)


def _state(runner: Runner) -> str:
    """Return a hash of the files, settings and variables that determine a host's facts; empty if the script
    ``machine-state.sh`` fails on the host.
    """
    folder = shipped_folder("containers")
    # Run machine-state.sh with the PATH of the probe, which contains the folders that a login shell adds.
    script = b"".join((folder / name).read_bytes() for name in ("login-path.sh", "machine-state.sh"))
    done = runner.run(Command.of("sh", "-s", stdin=script, timeout=_STATE_SECONDS))
    match = _STATE.search(done.text) if done.ok else None
    return match[1] if match else ""


def _name(runner: Runner, choice: NodeChoice) -> str:
    """Return the cache name of an answer: a hash of the host and the probe's command."""
    question = command(choice)
    parts = (runner.place, question.words, hashlib.sha256(question.stdin or b"").hexdigest())
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
