"""Read the output of a job, of any size, and explain it."""

from pathlib import Path
from typing import BinaryIO

from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.errors import BadInput
from toolkit.files import open_given
from toolkit.launch.tracking import records
from toolkit.model.finding import OutputExplanation
from toolkit.model.job import FINAL_STATES, JobRecord

_MOST = 64 << 20
"""Bytes of output that are kept; causes are near the beginning or the end, so the middle is skipped."""


_OUTPUTS = ("*.out", "*.err", "*.log", "*.txt", "output*", "stdout", "stderr")
"""Names of files of job output in a folder."""

_MOST_FILES = 64


def of_place(name: str) -> OutputExplanation:
    """Return the explanation of a file, of a folder with output, or of a job that was launched from here.

    Raises:
        BadInput: if there is no such file, folder or job, or it cannot be read.
    """
    path = Path(name)
    if path.is_dir():
        return _of_folder(path)
    if path.exists() or path.is_symlink() or "/" in name:
        return of_file(path)
    try:
        record = records.find(name)
    except BadInput:
        return of_file(path)
    return of_job(record)


def of_job(record: JobRecord) -> OutputExplanation:
    """Return the explanation of a job's output on this machine, and of the state that Slurm gave it."""
    folder = records.folder(record.key)
    try:
        with open_given(folder / records.OUTPUT) as opened:
            head, tail, skipped = ends(opened, _MOST // 2)
    except BadInput:
        head, tail, skipped = b"", b"", 0
    code = "" if record.exit_code is None else f", exit code {record.exit_code}"
    state = f"\njob: {record.id or record.key} ended as {record.state}{code}\n".encode()
    if record.state in FINAL_STATES and record.state != "completed":
        head, tail = (head, tail + state) if tail else (head + state, tail)
    found = _of_output(Output(head, tail, skipped))
    # A job that resumed after ranks failed has not failed.
    return OutputExplanation(findings=found.findings) if record.state == "completed" else found


def _of_folder(folder: Path) -> OutputExplanation:
    """Return the explanation of the files of output in a folder, the oldest first."""
    found = {file for pattern in _OUTPUTS for file in folder.glob(pattern) if file.is_file()}
    if not found:
        raise BadInput(f"{folder}: no file of job output", fix="give the file that sbatch wrote")
    files = sorted(found, key=lambda file: (file.stat().st_mtime, file.name))[-_MOST_FILES:]
    pieces = []
    for file in files:
        with open_given(file) as opened:
            head, tail, _ = ends(opened, _MOST // 2 // len(files))
        pieces.append(f"==> {file.name} <==\n".encode() + head + tail)
    return _of_output(Output(b"\n".join(pieces)))


def of_file(path: Path) -> OutputExplanation:
    """Return the explanation of a file.

    Raises:
        BadInput: if the file does not exist or cannot be read.
    """
    with open_given(path, fix="give the file that sbatch wrote, or -") as opened:
        return of_stream(opened)


def of_stream(stream: BinaryIO) -> OutputExplanation:
    """Return the explanation of what a stream holds; of more than 64 MiB the middle is skipped."""
    return _of_output(Output(*ends(stream, _MOST // 2)))


def of_text(text: str | bytes) -> OutputExplanation:
    """Return the explanation of a text."""
    return _of_output(Output(text))


def _of_output(output: Output) -> OutputExplanation:
    return explain_output(output)


def ends(stream: BinaryIO, half: int) -> tuple[bytes, bytes, int]:
    """Return the beginning, the end, and how many line breaks were left out between them."""
    head = stream.read(2 * half)
    chunk = stream.read(1 << 20)
    if not chunk:
        return head, b"", 0
    tail, skipped = bytearray(head[half:]), 0
    head = head[:half]
    while chunk:
        tail += chunk
        over = len(tail) - half
        skipped += tail.count(b"\n", 0, over)
        del tail[:over]
        chunk = stream.read(1 << 20)
    return head, bytes(tail), skipped
