"""Classify a launch of a program without MPI, from the lines that its ranks printed."""

import json
import re
from typing import Any

from tests.matrix.outcome import Seen, telling

_LABEL = re.compile(r"^ *\d+: ")
_LINE = re.compile(r'\{"rank": -?\d+, "size": \d+, "comm": "\w+"\}')
_LOADER = re.compile(r"error while loading shared libraries|cannot open shared object file|undefined symbol")
_CRASH = re.compile(r"Segmentation fault|Bus error|signal 7|signal 11|SIGBUS|SIGSEGV|core dumped")


def told(text: str) -> list[dict[str, Any]]:
    return [json.loads(found) for found in _LINE.findall(text)]


def classify(text: str, status: int | None, timed_out: bool, want: int) -> Seen:
    lines = told(text)
    sizes = tuple(sorted(line["size"] for line in lines if line["comm"] == "begun"))
    good = sum(line["comm"] == "ok" for line in lines)
    wrong = any(line["comm"] == "wrong" for line in lines)
    if timed_out and (not sizes or want in sizes):
        outcome = "hang"
    elif status == 0 and not timed_out:
        outcome = _ended(sizes, want, good == len(sizes) and not wrong)
    elif sizes:
        outcome = _begun(text, sizes, want)
    else:
        outcome = "loader-failure" if _LOADER.search(text) else "init-failure"
    return Seen(outcome=outcome, sizes=sizes, exit=status, line=telling(_without(text)))


def _ended(sizes: tuple[int, ...], want: int, right: bool) -> str:
    if not sizes:
        return "init-failure"
    if set(sizes) == {want} and len(sizes) == want:
        return "ok" if right else "comm-failure"
    return "singletons" if set(sizes) == {1} and want > 1 else "wrong-size"


def _begun(text: str, sizes: tuple[int, ...], want: int) -> str:
    # When Slurm ends ranks of a wrong world, a rank can print 'Bus error', because its image is unmounted.
    if want not in sizes:
        return "singletons" if set(sizes) == {1} else "wrong-size"
    return "crash" if _CRASH.search(text) else "comm-failure"


def _without(text: str) -> str:
    """Return the text without tracebacks and without the lines that toolkit's job script always prints."""
    dull = re.compile(r"^(job: |Traceback|  File |    |\[W|\[Gloo\])")
    return "\n".join(line for line in text.splitlines() if not dull.search(_LABEL.sub("", line)))
