"""Runs on the login node of a cluster: jobs in, outcomes out; needs Python 3.9 and Slurm alone.

Standard input holds one job a line: {"id", "script", "nodes", "ranks_per_node", "seconds"}. Standard output
gets one line a job as it ends: {"id", "exit", "timed_out", "text", "seconds"}. As many jobs run at a time as
the first argument says.
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


def run(job):
    base = FOLDER / job["id"]
    script, inner, out, status = (base.with_suffix(s) for s in (".sh", ".run", ".out", ".status"))
    for path in (out, status):
        path.unlink(missing_ok=True)
    inner.write_text(job["script"])
    # The script of a job finds the folder of the run made.
    limit = f"timeout --foreground -k 5 {job['seconds']} bash {inner}"
    script.write_text(f'#!/bin/bash\n{limit} < /dev/null > {out} 2>&1\necho "$? $SECONDS" > {status}\n')
    ranks = job["nodes"] * job["ranks_per_node"]
    words = ["sbatch", "--parsable", "-o", str(base.with_suffix(".log")), "-N", str(job["nodes"])]
    words += ["-n", str(ranks), "--ntasks-per-node", str(job["ranks_per_node"]), "--time", "5"]
    done = subprocess.run([*words, str(script)], capture_output=True, text=True)
    number = done.stdout.split(";")[0].strip()
    if not number:
        return {
            "id": job["id"],
            "exit": 1,
            "timed_out": False,
            "text": "sbatch: " + done.stderr,
            "seconds": 0,
        }
    deadline = time.monotonic() + 240
    code, took = None, 0
    while time.monotonic() < deadline:
        if status.exists() and status.read_text().endswith("\n"):
            code, took = (int(word) for word in status.read_text().split())
            break
        time.sleep(0.05)
    subprocess.run(["scancel", number], capture_output=True)
    text = out.read_text(errors="replace") if out.exists() else ""
    late = code is None or (code in (124, 137) and took >= job["seconds"] - 1)
    return {"id": job["id"], "exit": code, "timed_out": late, "text": text[-MOST_TEXT:], "seconds": took}


def told(job):
    done = run(job)
    with LOCK:
        print(json.dumps(done), flush=True)


FOLDER.mkdir(parents=True, exist_ok=True)
with concurrent.futures.ThreadPoolExecutor(int(sys.argv[1])) as pool:
    list(pool.map(told, [json.loads(line) for line in sys.stdin]))
