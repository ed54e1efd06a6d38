"""Copy the result files of a job to this machine, except files that this machine already has."""

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from toolkit.errors import BadInput, CheckFailed
from toolkit.files import hash_file
from toolkit.job.project.code import COPY
from toolkit.job.project.pack import MOMENT
from toolkit.launch.request import sweep_values, variables
from toolkit.launch.tracking import records
from toolkit.model.job import JobRecord
from toolkit.model.progress import Tell
from toolkit.run.command import Command, Runner
from toolkit.run.stage import remote_hashes
from toolkit.units import format_size

_LIST_SECONDS = 120.0
_PIECE = 4 << 20
_OWN = {
    records.SCRIPT, sweep_values.FILE, variables.FILE, variables.SECRETS, "exit-code", "stop-asked",
    "process", records.TIMES,
    "went-back", "token", "notebook.json", "notebook.py", "relay.py", "relay.sh", ".secret",
}  # fmt: skip
"""The names of files in a job's folder that toolkit and its job scripts write for their own use."""
_OWN_NAMES = ("toolkit-*", ".*.part", "*.pyc")


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file that a job wrote: its path on the job's host, and its size in bytes.

    ``path`` is the path of the copy on this machine, relative to the target folder of the copy.
    """

    remote_path: str
    path: str
    size: int


def list_results(runner: Runner, record: JobRecord) -> list[ResultFile]:
    """Return the files that a job wrote to its folder, sorted by path.

    The result omits the files that toolkit writes for its own use. The result also omits the files of the
    user's project that toolkit copied to the job's folder, unless the job changed these files.

    Raises:
        CheckFailed: if toolkit cannot list the folder.
    """
    folder = record.spec.directory
    command = Command.of("find", folder, "-type", "f", "-printf", r"%s\t%T@\t%P\0", timeout=_LIST_SECONDS)
    done = runner.run(command)
    if not done.stdout:
        done.require(f"listing {folder} on {runner.place}", "the job's folder may have been deleted")
    array = bool(record.spec.array)
    entries = (_entry(folder, line, array=array) for line in done.text.split("\0") if line)
    return sorted((file for file in entries if file is not None), key=lambda file: file.path)


def _entry(folder: str, line: str, *, array: bool) -> ResultFile | None:
    size, moment, whole = line.split("\t", 2)
    # Each task of a job array has its own folder.
    task, path = _of_task(whole) if array else ("", whole)
    name = posixpath.basename(path)
    inside = path.startswith(f"{COPY}/")
    if not inside and (path in _OWN or any(fnmatchcase(name, own) for own in _OWN_NAMES)):
        return None
    if inside and (int(float(moment)) == MOMENT or "__pycache__/" in path):
        return None
    return ResultFile(posixpath.join(folder, whole), task + path.removeprefix(f"{COPY}/"), int(size))


def _of_task(path: str) -> tuple[str, str]:
    """Split a path into the folder of an array task (or an empty string) and the rest of the path."""
    first, slash, rest = path.partition("/")
    return (first + slash, rest) if slash and first.isdigit() else ("", path)


def match_patterns(results: Iterable[ResultFile], patterns: Sequence[str]) -> list[ResultFile]:
    """Return the files whose path, name or folder matches a pattern. Return all files if there is no pattern.

    Raises:
        BadInput: if a pattern matches no file.
    """
    files = list(results)
    for pattern in patterns:
        if not any(_matches(file, pattern) for file in files):
            names = ", ".join(file.path for file in files[:10]) or "(the job wrote no files)"
            raise BadInput(
                f"{pattern}: no file of the job matches this pattern",
                fix=f"choose from the files of the job: {names}",
            )
    return [file for file in files if not patterns or any(_matches(file, p) for p in patterns)]


def _matches(file: ResultFile, pattern: str) -> bool:
    text = pattern.rstrip("/")
    name = posixpath.basename(file.path)
    return fnmatchcase(file.path, text) or fnmatchcase(name, text) or fnmatchcase(file.path, f"{text}/*")


def fetch(runner: Runner, files: Sequence[ResultFile], target: Path, tell: Tell) -> list[Path]:
    """Copy files to the folder ``target`` on this machine, and return the paths of the copied files.

    toolkit does not copy a file that ``target`` already contains, and resumes interrupted copies. A copy gets
    its final name only if its SHA-256 digest equals the digest of the original file.

    Raises:
        CheckFailed: if a file changes during the copy.
        BadInput: if toolkit cannot write a file on this machine.
    """
    digests = remote_hashes(runner, [file.remote_path for file in files])
    copied = []
    for file in files:
        digest, path = digests.get(file.remote_path), target / file.path
        if digest is None or (
            path.is_file() and path.stat().st_size == file.size and hash_file(path) == digest
        ):
            continue
        tell.step(f"Fetching {file.path} ({format_size(file.size)})")
        _copy(runner, file, path, digest, tell.detail)
        copied.append(path)
    return copied


def _copy(runner: Runner, result: ResultFile, path: Path, digest: str, detail: Callable[[str], None]) -> None:
    part = path.with_name(f".{path.name}.{digest[:16]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as file:
            done = file.tell()
            while content := runner.read(result.remote_path, done, _PIECE):
                file.write(content)
                done += len(content)
                detail(f"{done / max(result.size, 1):.0%}")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", fix="give another folder with -o DIR") from error
    if hash_file(part) != digest:
        part.unlink()
        raise CheckFailed(
            f"{result.path}: the file changed while it was copied",
            fix="fetch the file again when the job has ended",
        )
    part.replace(path)


def in_words(record: JobRecord, files: Sequence[ResultFile]) -> str:
    """Return a line that names a job's largest result files, and the command that copies all result files.

    The line is empty if the job has no result files. The files with the job's standard output and standard
    error are not result files.
    """
    names = {record.spec.output, record.spec.error}
    names |= {name.replace("%a", str(task.index)) for task in record.tasks for name in names}
    results = [file for file in files if file.path not in names]
    if not results:
        return ""
    first = sorted(results, key=lambda file: file.size, reverse=True)[:3]
    shown = ", ".join(f"{file.path} ({format_size(file.size)})" for file in first)
    more = f" and {len(results) - len(first)} more" if len(results) > len(first) else ""
    return f"The job wrote {shown}{more}; to copy these files: toolkit jobs fetch {record.key}"
