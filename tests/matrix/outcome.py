"""Classify a launch from its output and its exit status.

The classes are the outcomes that the engine predicts. A launch with exit status 0 and a wrong world size is
a silent failure.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

_UNAVAILABLE = re.compile(
    r"invalid MPI type|Couldn't find the specified plugin name for mpi|cannot find mpi plugin|"
    r"MPI plugin .* not found|env: .(mpirun|mpiexec).: No such file|\bmpirun: (command )?not found|"
    r"Unable to find command .(mpirun|mpiexec)|.(mpirun|mpiexec).: executable file not found in \$PATH|"
    r"failed to initialize MPI plugin|can't execve\(2\): (mpirun|mpiexec): No such file",
    re.IGNORECASE,
)
_LOADER = re.compile(
    r"error while loading shared libraries|cannot open shared object file|version `[A-Z]+_[\d.]+' not found|"
    r"symbol lookup error|undefined symbol"
)
_CRASH = re.compile(
    r"Segmentation fault|Caught signal (11|7|6)|signal 11|terminated with signal (11|7|6)\b|Bus error|"
    r"Aborted \(core|signal: (11|7|6)|Exited with exit code 13[24569]\b",
    re.IGNORECASE,
)
_IGNORED = re.compile(r".*(component_find|\(ignored\)$|from LD_PRELOAD cannot be preloaded).*", re.MULTILINE)
"""Messages about a plugin or a preloaded library that can be ignored, because the launch does not need it."""
_ENDED = re.compile(
    r"^.*\bslurmstepd\b.*\bSTEP [\d.]+ ON \S+ CANCELLED\b|^srun: .*\bTerminating StepId=", re.MULTILINE
)
_SIGNALS = {132, 134, 135, 136, 139}
"""Exit statuses of a shell or srun whose program was killed by SIGILL, SIGABRT, SIGBUS, SIGFPE or SIGSEGV."""
_HEAD = re.compile(r'"rank": (\d+), "size": (\d+), "host"')
_COMM = re.compile(r'"comm": "(begun|ok|wrong)"\}')
_LABEL = re.compile(r"^ *\d+: ")
_NOISE = re.compile(
    r"^\s*$|^-+$|^INFO:|^srun: (job|Terminating)|^slurmstepd: error: \*\*\*|^srun: launch/slurm|"
    r"^Sorry!|But I couldn't|/help-[\w-]+\.txt|^find-available:|It looks like \w+ failed for some|"
    r"slurm_script: line \d+: +\d+ Killed"
)
_AFTER = re.compile(r"^(INFO|WARNING):|^srun: error: \S+: tasks? [\d,-]+: (Exited|Terminated|Killed)")
"""Lines that report how a launch finished or continued, without a cause."""
_TELLING = re.compile(
    r"GLIBC_|shared libraries|symbol lookup|PMI|PMIX|OPAL ERROR|ORTE|PRTE|unsupported|Unreachable|reachable|"
    r"signal|fault|error|fail|abort|not found|cannot|unable|denied|invalid",
    re.IGNORECASE,
)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one try; ``line`` is the line of the output that best explains the outcome."""

    outcome: str
    sizes: tuple[int, ...]
    exit: int | None
    line: str
    library: str = ""

    @property
    def silent(self) -> bool:
        return self.exit == 0 and self.outcome != "ok"


def ranks(text: str) -> tuple[dict[str, Any], ...]:
    """Return the JSON lines that the ranks printed, also if a launcher mixed the lines of several ranks."""
    whole = tuple(_lines(text))
    heads, comms = _HEAD.findall(text), _COMM.findall(text)
    if len(heads) != len(comms) or len(whole) == len(heads):
        return whole
    # Each rank prints two lines, first "begun" and then its result. Both start with its rank and size.
    found = sorted((int(rank), int(size)) for rank, size in heads)
    told = sorted(comms, key=lambda comm: comm != "begun")
    split = told.count("begun")
    begun = found[::2] if split * 2 == len(found) else found[:split]
    ended = found[1::2] if split * 2 == len(found) else found[split:]
    return tuple(
        {"rank": rank, "size": size, "comm": comm, "library": ""}
        for (rank, size), comm in zip((*begun, *ended), told, strict=True)
    )


def _lines(text: str) -> Iterator[dict[str, Any]]:
    for raw in text.splitlines():
        line = _LABEL.sub("", raw)
        start = line.find('{"rank"')
        if start < 0:
            continue
        with contextlib.suppress(json.JSONDecodeError):
            # The text of an MPI library's version may contain braces, and another rank's line may follow
            # without a line break.
            yield json.JSONDecoder().raw_decode(line[start:])[0]


def classify(text: str, status: int | None, timed_out: bool, want: int) -> Seen:
    text = text.replace("\r\n", "\n")
    told = ranks(text)
    begun = [line for line in told if line["comm"] == "begun"]
    ended = [line for line in told if line["comm"] != "begun"]
    sizes = tuple(sorted(line["size"] for line in begun))
    right = len(ended) == want and not any(line["comm"] == "wrong" for line in ended)
    if timed_out:
        outcome = "hang"
    elif status == 0 and len(sizes) == want:
        outcome = _world(sizes, want, right)
    else:
        outcome = _begun(text, sizes, want) if sizes else _never_begun(text, status)
    return Seen(
        outcome=outcome,
        sizes=sizes,
        exit=status,
        line=telling(text),
        library=begun[0]["library"][:120] if begun else "",
    )


def _begun(text: str, sizes: tuple[int, ...], want: int) -> str:
    """Return the outcome of a launch whose ranks passed MPI_Init, but did not all succeed."""
    if _CRASH.search(text):
        return "crash"
    return "singletons" if set(sizes) == {1} and want > 1 else "comm-failure"


def _never_begun(text: str, status: int | None) -> str:
    if _UNAVAILABLE.search(text):
        return "unavailable"
    # Slurm stops the other ranks after a failure. Lines after this stop are not causes, because they may
    # only report that a rank's files are gone.
    first = _ENDED.split(text, maxsplit=1)[0]
    named = any(_TELLING.search(line) for line in _lines_of(first) if not _AFTER.search(line))
    cut = named and first != text
    text = _IGNORED.sub("", first if named else text)
    if _LOADER.search(text):
        return "loader-failure"
    # Slurm's exit status is the highest of all ranks, including ranks that Slurm killed.
    ended = status in _SIGNALS and not cut
    return "crash" if _CRASH.search(text) or ended else "init-failure"


def _world(sizes: tuple[int, ...], want: int, right: bool) -> str:
    if set(sizes) == {want}:
        return "ok" if right else "comm-failure"
    return "singletons" if set(sizes) == {1} else "wrong-size"


def telling(text: str) -> str:
    """Return the first line that names a cause, or else the last useful line."""
    lines = _lines_of(text)
    told = next((line for line in lines if _TELLING.search(line)), lines[-1] if lines else "")
    return told[:240]


def _lines_of(text: str) -> list[str]:
    lines = [_LABEL.sub("", line).strip() for line in text.splitlines()]
    return [
        line for line in lines if '"rank"' not in line and '"comm"' not in line and not _NOISE.search(line)
    ]
