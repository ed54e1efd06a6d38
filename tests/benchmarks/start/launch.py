"""Compare ``toolkit launch`` with an srun command that the user types.

Usage: python -m tests.benchmarks.start.launch CLUSTER IMAGE.sif [--rounds N].

``CLUSTER`` is a virtual cluster with two nodes. Each round runs every case once: from this machine over SSH,
and on the login node. The first job copies the image, and its time is not used.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from toolkit.cluster.access import config_of
from toolkit.launch.tracking import records

MARK = "first-step"
COMMAND = ("date", f"+{MARK}")
"""The command of each rank: ``date`` prints its format string, which is only the mark."""

_WATCH = f"""
import json, subprocess, sys, time
began = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
first = next((time.monotonic() - began for line in process.stdout if line.rstrip().endswith(b"{MARK}")), None)
process.stdout.read()
status = process.wait()
print(json.dumps([first, time.monotonic() - began, status]))
"""
"""A Python program that runs a command; it prints the seconds to the mark and to the exit, and the status."""

Times = tuple[float, float]
"""Seconds to the first output of a rank, and to the return of the shell prompt."""


def watched(words: Sequence[str], host: Sequence[str] = (), **env: str) -> Times:
    """Return the times of a command here, or on the login node that the SSH command ``host`` reaches."""
    if host:
        sets = shlex.join(f"{name}={value}" for name, value in env.items())
        words = [*host, f"env {sets} python3 -c {shlex.quote(_WATCH)} {shlex.join(words)}"]
    else:
        words = [sys.executable, "-c", _WATCH, *words]
    done = subprocess.run(
        words, env={**os.environ, **env}, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
    first, end, status = json.loads(done.stdout.splitlines()[-1])
    if status or first is None:
        raise RuntimeError(f"{shlex.join(words)}: status {status}, first output {first}")
    return first, end


def table(times: Mapping[str, Sequence[Times]]) -> str:
    """Return a table with the medians of each case, and their difference from the case ``by hand``."""
    lines = [
        "| case | first output | after by hand | ratio | prompt | after by hand |",
        "|---|---|---|---|---|---|",
    ]
    for case, all_times in times.items():
        base = times[f"{case.partition(':')[0]}: by hand"]
        (first, end), (by_hand, end_by_hand) = (
            [median(column) for column in zip(*t, strict=True)] for t in (all_times, base)
        )
        lines.append(
            f"| {case} | {first:.2f} s | {first - by_hand:+.2f} s | {first / by_hand:.1f} "
            f"| {end:.2f} s | {end - end_by_hand:+.2f} s |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and print each round and the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cluster")
    options.add_argument("image", type=Path)
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    program = str(Path(sys.executable).with_name("toolkit"))
    launch = (program, "launch", "--cluster", asked.cluster, "--image", str(asked.image), "--nodes", "2")
    watched([*launch, "--", *COMMAND])
    there = records.every()[-1].spec.image
    ssh = ("ssh", "-F", str(config_of(asked.cluster)), "login")
    hand = ("srun", "--mpi=pmix", "--nodes=2", "apptainer", "exec", there, *COMMAND)
    on_login = ("toolkit", "launch", "--image", there, "--nodes", "2")
    watched([*on_login, "--", *COMMAND], ssh)
    plain, probing = "--no-preflight", {"TOOLKIT_FACTS_SECONDS": "0"}
    cases = {
        "desk: by hand": lambda: watched([*ssh, shlex.join(hand)]),
        "desk: toolkit": lambda: watched([*launch, plain, "--", *COMMAND]),
        "desk: toolkit, host probed": lambda: watched([*launch, plain, "--", *COMMAND], **probing),
        "desk: toolkit, preflight": lambda: watched([*launch, "--", *COMMAND]),
        "login: by hand": lambda: watched(hand, ssh),
        "login: toolkit": lambda: watched([*on_login, plain, "--", *COMMAND], ssh),
        "login: toolkit, host probed": lambda: watched([*on_login, plain, "--", *COMMAND], ssh, **probing),
    }
    times: dict[str, list[Times]] = {case: [] for case in cases}
    for number in range(asked.rounds):
        for case, run in cases.items():
            # slurmctld starts batch jobs at whole seconds, so begin each run at a random part of a second.
            time.sleep(random.random())
            times[case].append(run())
        print(number, f"load {os.getloadavg()[0]:.1f}", {c: times[c][-1] for c in times}, flush=True)
    print(table(times))


if __name__ == "__main__":
    main()
