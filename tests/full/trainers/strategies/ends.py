"""Start ranks as srun does without PMI, disturb one rank, and print how all ranks exited: ends.py CASE..."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LONG = {"IMAGES": "64000"}
MANY = ("--epochs", "500")


def ranks(name, strategy, count, *options, started=None, environment=None):
    host = socket.gethostname()
    common = {
        **os.environ,
        **(environment or {}),
        "SLURM_JOB_ID": str(abs(hash(name)) % 10000),
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": str(count),
        "SLURM_STEP_NODELIST": host,
        "SLURMD_NODENAME": host,
    }
    words = [sys.executable, "/test/small.py", "--output", f"/out/{name}", "--strategy", strategy, *options]
    return [
        subprocess.Popen(
            words,
            env={**common, "SLURM_PROCID": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(started or count)
    ]


def trained(name):
    file = Path(f"/out/{name}/metrics.jsonl")
    for _ in range(1200):
        if file.exists() and '"record": "epoch"' in file.read_text():
            return
        time.sleep(0.1)


def signalled(name, strategy, count, victim, number):
    every = ranks(name, strategy, count, *MANY, environment=LONG)
    trained(name)
    every[victim].send_signal(number)
    return every


def alone(name, strategy, count, *options):
    """Start only rank 0 of ``count`` ranks; if ``count`` is 0, start a process without Slurm's variables."""
    if count:
        return ranks(name, strategy, count, *options, started=1)
    words = [sys.executable, "/test/small.py", "--output", f"/out/{name}", "--strategy", strategy, *options]
    return [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)]


CASES = {
    "multiworker-killed": lambda name: signalled(name, "multiworker", 3, 1, signal.SIGKILL),
    "multiworker-stopped": lambda name: signalled(name, "multiworker", 2, 1, signal.SIGTERM),
    "multiworker-failed": lambda name: ranks(name, "multiworker", 2, environment={"FAIL_ON": "1"}),
    "ps-killed": lambda name: signalled(name, "ps", 3, 2, signal.SIGKILL),
    "ps-stopped": lambda name: signalled(name, "ps", 3, 0, signal.SIGTERM),
    "ps-failed": lambda name: ranks(name, "ps", 3, environment={"FAIL_ON": "0"}),
    "mirrored-started-twice": lambda name: alone(name, "mirrored", 2),
    "ps-of-two": lambda name: ranks(name, "ps", 2),
    "ps-of-servers": lambda name: ranks(name, "ps", 3, "--servers", "2"),
    "multiworker-without-peers": lambda name: alone(name, "multiworker", 0),
    "option-of-another": lambda name: alone(name, "single", 0, "--devices", "2"),
}

for case in sys.argv[1:]:
    every = CASES[case](case)
    begun, ended = time.monotonic(), []
    told = [one.communicate(timeout=120)[0] for one in every]
    codes = [one.returncode for one in every]
    seconds = time.monotonic() - begun
    print("RESULT", json.dumps({"name": case, "codes": codes, "told": told, "seconds": seconds}), flush=True)
