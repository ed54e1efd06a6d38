"""Test the strength of each row of ``faultlines.toml``: how clearly its lines name the fault."""

import msgspec

from tests.unit.knowledge.rows import tables
from toolkit.engine.logs.line_class import RowPart, likely_parts
from toolkit.knowledge.signatures import FaultLine, fault_lines

CAUSES = {
    4: [  # errors of libraries, shells and launchers
        "ProcessGroupNCCL's watchdog got stuck for 90 seconds",
        "the cache needs a file system that supports file locks, error 3",
        "Could not find the bitsandbytes CUDA binary at /opt/bnb/libbitsandbytes_cuda124.so",
        'unable to fork a new process via the "execve" system call',
        "./job.sh: Zeile 7: trian.py: Kommando nicht gefunden.",
        "./job.sh: ligne 9 : 2417 Erreur de segmentation  ./solver",
        "RuntimeError: Version mismatch: The cluster was started with:",
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "Erroneous arithmetic operation",
        'As of version 3.0.0, the "sm" BTL is no longer available in Open MPI.',
        "Error using fitnet (line 1498)",
        "timeout: sending signal KILL to command 'solver'",
        "*** An error occurred in MPI_Init",
        "ERRO: no image",
        "This test requires exactly two processes",
        "RuntimeError: world_size (6) must be divisible by 4",
        "terminate called without an active exception",
        "The job will now be aborted.  Please check your code and/or",
        "JAVA BINDINGS FAILED TO LOAD REQUIRED LIBRARIES",
        "Outdated Singularity installation found",
        "Called CmiAbort ------------ Reason: no memory",
        '/output does not contain key "level".',
        "RuntimeError: Expected world size 8 but got 4",
        "Attempting to use an MPI routine before initializing MPI",
        "Error: No available node types can fulfill resource request {'GPU': 8.0}",
        "[ABORT] A required keyword BASIS_SET was not found in section KIND",
        "Error in routine readpp (1): file /home/ada/Si.UPF not found",
    ],
    3: [  # errors in the log of a program that may continue
        "Fehler: keine Rechte",
        "srun: error: spank: lua.so: Plugin file not found",
        "usage: train.py [-h] [--lr LR]",
        "ERROR: step 3",
        "WARNING: Ignoring https://a.org/APKINDEX: temporary error",
        "the number of rows must be at least 4, not 0",
        "step 3 failed: builtins.KeyError: 'labels'",
        "failed call to cuInit: UNKNOWN ERROR (303)",
    ],
    2: [  # lines with only a word such as abort or failed
        "mpirun: 74: [: intel64: unexpected operator",
        "the option --gpus is no longer supported",
        "abort",
        "xla_bridge.py:9] No GPU/TPU found, falling back to CPU.",
        "pdsh@n1: n2: ssh exited with exit code 255",
        "[W socket.cpp:7] [c10d] The server socket has failed to bind to a:1 (errno: 98 - Address already in",
    ],
}
"""Lines that name a cause, by the strength of their row. Rows of strength 5 need no line here."""
STRENGTHS = {"cause": {2, 3, 4, 5}, "consequence": {2, 3}, "ending": {1, 4}}
"""Allowed strengths of rows, by role. A library's error has strength 4, and a consequence is weaker."""
PROGRESS = "[46/34aff4] process > align (1) [100%] 1 of 1, failed: 1"
"""A progress line of Nextflow. Its row is the only consequence with strength 2."""


def row_of(line: str) -> FaultLine | None:
    parts: list[RowPart] = [part for part in likely_parts(line) if part.row_of(line)]
    return parts[0].row if parts else None


def test_a_line_of_a_cause_has_the_strength_of_its_kind():
    found = {line: row_of(line) for lines in CAUSES.values() for line in lines}
    wrong = [
        (strength, line, row and row.strength)
        for strength, lines in CAUSES.items()
        for line in lines
        if not (row := found[line]) or (row.role, row.strength) != ("cause", strength)
    ]
    assert wrong == []
    weak = {row for row in fault_lines() if row.role == "cause" and row.strength != 5}
    assert [msgspec.to_builtins(row) for row in weak - set(found.values())] == []


def test_a_row_has_a_strength_of_its_role():
    rows = tables("faultlines")["line"]
    stated = [
        (row.get("role", "cause"), row["strength"], row.get("patterns")) for row in rows if "strength" in row
    ]
    assert [row for row in stated if row[1] not in STRENGTHS.get(row[0], ())] == []
    progress = row_of(PROGRESS)
    assert [row for row in fault_lines() if row.role == "consequence" and row.strength < 3] == [progress]
