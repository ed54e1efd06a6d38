"""Read the output of a job, which may have any size, and explain why the job failed."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.pieces import Piece, explain_pieces
from toolkit.errors import BadInput
from toolkit.files import open_given
from toolkit.job import slurmjob
from toolkit.launch.tracking import records
from toolkit.launch.tracking.accounting import NUMBER
from toolkit.model.finding import OutputExplanation
from toolkit.model.job import FINAL_STATES, JobRecord

_MOST = 64 << 20
"""The largest number of bytes of output that toolkit examines.

The cause of a failure is near the start or the end of the output, so toolkit skips the middle of larger
output.
"""


_OUTPUTS = (
    "*.out",
    "*.err",
    "*.log",
    "*.txt",
    "output*",
    "stdout",
    "stderr",
    "*/stdout*.log",
    "*/stderr*.log",
)
"""Name patterns of output files. The last two are for torchrun, which writes a folder for each rank."""

_MOST_FILES = 64

_PROGRAM = b"\x7fELF"
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zX", b"\x28\xb5\x2f\xfd")
"""The first bytes of files that gzip, bzip2, xz and zstd compressed."""


def of_place(name: str) -> OutputExplanation:
    """Explain the output of ``name``, which is a file, a folder, a recorded job or a Slurm job.

    Raises:
        BadInput: if the file, folder or job does not exist, or toolkit cannot read it.
    """
    path = Path(name)
    if path.is_dir():
        return _of_folder(path)
    if path.exists() or path.is_symlink() or "/" in name:
        return of_file(path)
    try:
        return of_job(records.find(name))
    except BadInput:
        if NUMBER.fullmatch(name):
            return _of_slurm(name)
        return of_file(path)


def of_job(record: JobRecord) -> OutputExplanation:
    """Explain a recorded job from its output on this machine and its final state.

    If toolkit submitted the job on this machine, also use the failed steps in Slurm's accounting.
    """
    pieces = _files(_outputs_of(record))
    if record.id and record.host is None and record.cluster is None:
        pieces += _ends(record.id.partition(";")[0])
    code = "" if record.exit_code is None else f", exit code {record.exit_code}"
    if record.state in FINAL_STATES and record.state != "completed":
        state = f"job: {record.id or record.key} ended as {record.state}{code}\n"
        pieces.append(Piece("", state.encode()))
    output_explanation = explain_pieces(pieces)
    # The output of a completed job may contain errors of ranks that failed before a restart.
    # These errors did not stop the job, so return the findings, but no field that describes a failure.
    return (
        OutputExplanation(findings=output_explanation.findings)
        if record.state == "completed"
        else output_explanation
    )


def _outputs_of(record: JobRecord) -> list[Path]:
    """Return the files on this machine that contain a job's standard output and standard error."""
    copy = records.folder(record.key) / records.OUTPUT
    directory = Path(record.spec.directory)
    output = copy if copy.is_file() else directory / record.spec.output
    named = [output, *([directory / record.spec.error] if record.spec.error else [])]
    return [path for path in named if path.is_file()]


def _of_slurm(number: str) -> OutputExplanation:
    """Explain a Slurm job that the user submitted without toolkit.

    Raises:
        BadInput: if Slurm on this machine reports no failure of the job and names no output file.
    """
    pieces = [*_files(slurmjob.files_of(number)), *_ends(number)]
    if not pieces:
        raise BadInput(
            f"{number}: not a file, not a job of toolkit, and not a Slurm job that failed on this cluster",
            fix="give the output file of the job: `toolkit explain slurm-JOB.out`",
        )
    return explain_pieces(pieces)


def _of_folder(folder: Path) -> OutputExplanation:
    """Explain the job that ran in ``folder``, or whose record is in ``folder``.

    For any other folder, explain its 64 newest output files, in order from the oldest to the newest.
    """
    if record := _record_of(folder):
        return of_job(record)
    outputs = {file for pattern in _OUTPUTS for file in folder.glob(pattern) if file.is_file()}
    if not outputs:
        raise BadInput(f"{folder}: the folder contains no job output", fix="give the output file of the job")
    files = sorted(outputs, key=lambda file: (file.stat().st_mtime, file.name))[-_MOST_FILES:]
    numbers = {file.stem.removeprefix("slurm-") for file in files if file.stem.startswith("slurm-")}
    ends = _ends(numbers.pop()) if len(numbers) == 1 else []
    return explain_pieces([*_files(files, folder), *ends])


def _record_of(folder: Path) -> JobRecord | None:
    """Return the record in ``folder``, or else the record of the newest job that ran in ``folder``.

    If there is no such record, return ``None``.
    """
    resolved = folder.resolve()
    if (resolved / records.RECORD).is_file() and resolved.parent == records.jobs_dir().resolve():
        with contextlib.suppress(BadInput):
            return records.find(resolved.name)
    same = (record for record in reversed(records.every()) if Path(record.spec.directory) == resolved)
    return next(same, None)


def _files(files: Sequence[Path], base: Path | None = None) -> list[Piece]:
    pieces = []
    for file in files:
        with open_given(file) as opened:
            head, tail, skipped = ends(opened, _MOST // 2 // len(files))
        name = str(file.relative_to(base)) if base else file.name
        pieces.append(Piece(name if len(files) > 1 else "", head, tail, skipped))
    return pieces


def _ends(number: str) -> list[Piece]:
    """Return the lines in which Slurm's accounting reports a job's failed steps, as one piece of output.

    The list is empty if Slurm reports no failed step. The lines are not from an output file, so messages
    that quote these lines show no line number.
    """
    lines: Iterable[str] = slurmjob.ends_of(number) if NUMBER.fullmatch(number) else ()
    text = "".join(f"{line}\n" for line in lines)
    return [Piece("sacct", text.encode(), counted=False)] if text else []


def of_file(path: Path) -> OutputExplanation:
    """Explain the output in a file.

    Raises:
        BadInput: if the file does not exist, toolkit cannot read it, or it is a program or a compressed file.
    """
    fix = "give the output file of the job, or `-` for standard input"
    with open_given(path, fix=fix) as opened:
        begin = opened.read(4)
        if begin.startswith(_PROGRAM):
            raise BadInput(f"{path}: this file is a program, not the output of a job", fix=fix)
        if begin.startswith(_COMPRESSED):
            raise BadInput(
                f"{path}: this file is compressed",
                fix="decompress the output: for example, `zcat FILE | toolkit explain -`",
            )
        opened.seek(0)
        return of_stream(opened)


def of_stream(stream: BinaryIO) -> OutputExplanation:
    """Explain the output in a stream; toolkit skips the middle of output that exceeds 64 MiB."""
    return explain_output(Output(*ends(stream, _MOST // 2)))


def of_text(text: str | bytes) -> OutputExplanation:
    """Explain output that the caller gives as text or bytes."""
    return explain_output(Output(text))


def ends(stream: BinaryIO, size: int) -> tuple[bytes, bytes, int]:
    """Return the first and the last ``size`` bytes of a stream, and the number of line breaks in the skipped
    bytes between these two parts.

    If the stream has at most ``2 * size`` bytes, the first value contains the whole stream.
    """
    head = stream.read(2 * size)
    chunk = stream.read(1 << 20)
    if not chunk:
        return head, b"", 0
    tail, skipped = bytearray(head[size:]), 0
    head = head[:size]
    while chunk:
        tail += chunk
        over = len(tail) - size
        skipped += tail.count(b"\n", 0, over)
        del tail[:over]
        chunk = stream.read(1 << 20)
    return head, bytes(tail), skipped
