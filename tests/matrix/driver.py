"""Run jobs on the login node of a cluster and print the outcome of each; needs Python 3.9 and Slurm.

Standard input has one job per line: {"id", "script", "nodes", "ranks_per_node", "seconds", "direct"}.
Standard output gets one line per job: {"id", "exit", "timed_out", "text"}. The driver cancels a job that
exceeds its seconds.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

FOLDER = pathlib.Path("/work/ada/matrix/jobs")
GRACE = 20.0
MOST_TEXT = 20000


def submit(job, script, out):
    words = ["sbatch", "--parsable", "--open-mode=truncate", "-o", str(out), "-N", str(job["nodes"])]
    words += [
        "-n",
        str(job["nodes"] * job["ranks_per_node"]),
        "--ntasks-per-node",
        str(job["ranks_per_node"]),
    ]
    done = subprocess.run([*words, str(script)], capture_output=True, text=True)
    return done.stdout.split(";")[0].strip(), done.stderr.strip()


def wait(status, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if status.exists() and status.read_text().endswith("\n"):
            code, took = status.read_text().split()
            return int(code), int(took)
        time.sleep(0.05)
    return None, seconds


def idle(seconds=15.0):
    """Wait until all jobs have ended, or cancel them after ``seconds``, before they disturb the next job."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not subprocess.run(["squeue", "-h"], capture_output=True, text=True).stdout.strip():
            return
        time.sleep(0.1)
    subprocess.run(["scancel", "--user", "ada", "--signal=KILL"], capture_output=True)
    subprocess.run(["scancel", "--user", "ada"], capture_output=True)


def run(job):
    script, out, status = (FOLDER / (job["id"] + suffix) for suffix in (".sh", ".out", ".status"))
    for path in (out, status):
        path.unlink(missing_ok=True)
    inner = FOLDER / (job["id"] + ".run")
    inner.write_text(job["script"])
    limit = f"timeout -k 5 {job['seconds']} bash {inner}"
    script.write_text(f'#!/bin/bash\n{limit} < /dev/null\necho "$? $SECONDS" > {status}\n')
    if job["direct"]:
        with out.open("w") as sink:
            process = subprocess.Popen(
                ["bash", str(script)],
                stdout=sink,
                stderr=sink,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            code, took = wait(status, job["seconds"] + GRACE)
            if code is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    else:
        number, said = submit(job, script, out)
        if not number:
            return {"id": job["id"], "exit": 1, "timed_out": False, "text": "sbatch: " + said}
        code, took = wait(status, job["seconds"] + GRACE)
        if code is None:
            subprocess.run(["scancel", number], capture_output=True)
    idle()
    text = out.read_text(errors="replace") if out.exists() else ""
    # Status 137 means that the time limit or srun killed the ranks. Only the duration shows which of the two.
    late = code is None or (code in (124, 137) and took >= job["seconds"] - 1)
    return {"id": job["id"], "exit": code, "timed_out": late, "text": text[-MOST_TEXT:]}


FOLDER.mkdir(parents=True, exist_ok=True)
for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
