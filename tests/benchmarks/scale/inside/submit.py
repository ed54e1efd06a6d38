"""Print the seconds from the call of sbatch until ``toolkit jobs show`` has printed the job; runs on a login
node.

Usage: python3 submit.py IMAGE. It needs only Python and toolkit on the node, and no other file of this
repository.
"""

import json
import subprocess
import sys
import time

ROUNDS = 5
LAUNCH = ("toolkit", "launch", "--image", sys.argv[1], "--nodes", "1", "--ranks-per-node", "1", "--no-follow")
COMMAND = ("--", "hostname")


def seconds() -> float:
    with subprocess.Popen(
        (*LAUNCH, *COMMAND), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as job:
        assert job.stderr
        told = []
        while "Submitting to Slurm" not in (line := job.stderr.readline()):
            told.append(line)
            if not line:
                sys.exit("".join(told))
        began = time.perf_counter()
        job.communicate(timeout=60)
    shown = json.loads(subprocess.run(("toolkit", "jobs", "show"), check=True, capture_output=True).stdout)
    assert shown["id"], shown
    return time.perf_counter() - began


print(json.dumps([seconds() for _ in range(ROUNDS)]))
