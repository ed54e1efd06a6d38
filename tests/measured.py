"""Run a command, and measure its CPU time and its peak memory."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_AROUND = """
import json, os, resource, subprocess, sys
most, to = int(sys.argv[1]), int(sys.argv[2])
if most:
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
code = subprocess.run(sys.argv[3:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
os.write(to, json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss << 10]).encode())
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Cost of a command: the CPU time in seconds, and the peak memory in bytes."""

    code: int
    cpu: float
    peak: int


def measured(
    words: Sequence[str], *, most: int = 0, env: Mapping[str, str] | None = None, quiet: bool = True
) -> Measured:
    """Run a command and return its cost; ``most`` limits its address space, in bytes (0: no limit).

    On Linux, the peak memory of a process includes the memory of its parent at the start. pytest is large, so
    a small process starts the command.
    """
    reading, writing = os.pipe()
    out = subprocess.DEVNULL if quiet else None
    with os.fdopen(reading, "rb") as told:
        subprocess.run(
            [sys.executable, "-S", "-c", _AROUND, str(most), str(writing), *words],
            stdout=out, stderr=out, env=env, pass_fds=(writing,), check=True,
        )  # fmt: skip
        os.close(writing)
        return Measured(*json.loads(told.read()))
