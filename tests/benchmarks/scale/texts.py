"""Generate the output that a cluster with many nodes would print, from the recorded output of two nodes."""

import re
from pathlib import Path

_EVIDENCE = Path(__file__).parents[2] / "evidence" / "virtual-cluster-nodes.txt"


def host_list(nodes: int) -> str:
    """Return a node list in Slurm's notation, with gaps as if some nodes were drained."""
    gaps = (f"{10 * n + 1:04}-{10 * n + min(9, nodes - 9 * n):04}" for n in range(-(-nodes // 9)))
    return f"n[{','.join(gaps)}]"


def answers(nodes: int) -> str:
    """Return what the nodes answer to ``toolkit probe --nodes all``.

    Each node repeats a real node's recorded answer. Every hundredth node reports less shared memory.
    """
    text = _EVIDENCE.read_text()
    head, marker, rest = text.partition("toolkit-nodes/1\n")
    one = [line.partition(":")[2] for line in rest.splitlines() if re.match(r" *0:", line)]
    end = [line for line in rest.splitlines() if line.startswith("@")]
    names = [f"n{number:04}" for number in range(nodes)]
    shm = re.compile(r"\b4628268\b")
    known = [f"|{name}|idle|debug*" for name in names]
    lines = [
        f"{number}:" + (shm.sub("65536", line) if number % 100 == 0 else line).replace("node1", name)
        for number, name in enumerate(names)
        for line in one
    ]
    return head + marker + "\n".join([*known, *lines, *end]) + "\n"


def job_line(nodes: int) -> str:
    """Return the output of ``scontrol --oneliner show job`` for a job on ``nodes`` nodes."""
    return (
        "JobId=123 JobName=mnist UserId=ada(1000) Priority=1 Account=(null) JobState=RUNNING Reason=None "
        "Restarts=0 ExitCode=0:0 StartTime=2026-11-21T10:00:00 EndTime=2026-11-22T10:00:00 Partition=sim "
        f"NodeList={host_list(nodes)} NumNodes={nodes} StdOut=/work/ada/output.log"
    )


def queue(jobs: int) -> str:
    """Return the output of ``squeue`` for ``jobs`` waiting jobs."""
    return "".join(f"{number}|Priority\n" for number in range(1, jobs + 1))


def output(ranks: int, lines: int) -> str:
    """Return ``lines`` lines of output of ``ranks`` ranks under ``srun --label``; the last rank fails."""
    width = len(str(ranks - 1))
    said = [f"{n % ranks:{width}}: step {n // ranks} loss 0.1234" for n in range(lines)]
    said.append(f"srun: error: n0001: task {ranks - 1}: Exited with exit code 7")
    return "\n".join(said) + "\n"
