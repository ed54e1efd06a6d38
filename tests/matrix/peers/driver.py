"""Run jobs on the login node of a cluster and print the outcomes; needs only Python 3.9 and Slurm.

Standard input has one job per line: {"id", "script", "nodes", "ranks_per_node", "seconds"}. Standard output
gets one line for each finished job: {"id", "exit", "timed_out", "text"}. The first argument is the number of
jobs to run at a time. The driver cancels a job if no rank makes progress for ``seconds`` after all ranks have
started.
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import threading
import time

FOLDER = pathlib.Path("/work/ada/peers/jobs")
MOST_TEXT = 20000
LOCK = threading.Lock()
LONGEST = 420
"""Longest time in seconds for a job to start all ranks, and to end after the last line of all ranks."""


def run(job):
    base = FOLDER / job["id"]
    script, inner, out, status = (base.with_suffix(s) for s in (".sh", ".run", ".out", ".status"))
    for path in (out, status):
        path.unlink(missing_ok=True)
    inner.write_text(job["script"])
    script.write_text(f'#!/bin/bash\nbash {inner} < /dev/null > {out} 2>&1\necho "$?" > {status}\n')
    ranks = job["nodes"] * job["ranks_per_node"]
    words = ["sbatch", "--parsable", "-o", str(base.with_suffix(".log")), "-N", str(job["nodes"])]
    words += ["-n", str(ranks), "--ntasks-per-node", str(job["ranks_per_node"]), "--time", "10"]
    done = subprocess.run([*words, str(script)], capture_output=True, text=True)
    number = done.stdout.split(";")[0].strip()
    if not number:
        return {"id": job["id"], "exit": 1, "timed_out": False, "text": "sbatch: " + done.stderr}
    code = wait(out, status, ranks, job["seconds"])
    if code is None:
        subprocess.run(["scancel", number], capture_output=True)
    text = out.read_text(errors="replace") if out.exists() else ""
    return {"id": job["id"], "exit": code, "timed_out": code is None, "text": text[-MOST_TEXT:]}


def wait(out, status, ranks, seconds):
    """Wait for a job, and return its exit status, or ``None`` if the driver must cancel the job."""
    deadline, before = time.monotonic() + LONGEST, 0
    while time.monotonic() < deadline:
        if status.exists() and status.read_text().endswith("\n"):
            return int(status.read_text())
        text = out.read_text(errors="replace") if out.exists() else ""
        lines = text.count('"comm"')
        if lines > before and text.count('"started"') >= ranks:
            # After the last line of all ranks, their processes may take longer to end.
            done = text.count('"ok"') >= ranks
            deadline, before = time.monotonic() + (LONGEST if done else seconds), lines
        time.sleep(0.2)
    return None


def told(job):
    done = run(job)
    with LOCK:
        print(json.dumps(done), flush=True)


FOLDER.mkdir(parents=True, exist_ok=True)
with concurrent.futures.ThreadPoolExecutor(int(sys.argv[1])) as pool:
    list(pool.map(told, [json.loads(line) for line in sys.stdin]))
