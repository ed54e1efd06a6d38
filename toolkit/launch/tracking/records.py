"""Read and write job records on this machine. Each record has a folder in the user's state folder.

Several processes may use one record at the same time. A writer replaces the whole file, so a reader never
reads a partial record. :func:`update` locks the record, reads the file, and writes the changed record.
"""

import contextlib
import fcntl
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from toolkit.data import state_dir
from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, CheckFailed
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.run.local import LocalRunner

RECORD = "record.json"
SCRIPT = "job.sh"
OUTPUT = "output.log"
METRICS = "metrics.jsonl"
"""The names of files in a record's folder on this machine. All files except ``record.json`` are copies of
files in the job's folder."""

TIMES = "start-times"
"""The file in the job's folder in which the job script records the time at which each start phase begins."""

METRICS_MOST = 64 << 20
"""The largest number of bytes that toolkit reads from a metrics file; an epoch needs about 300 bytes."""

_LOCK = ".lock"
_LOCK_SECONDS, _LOCK_PAUSE = 5.0, 0.01
"""The maximum time to wait for the lock, and the time between two tries to get the lock, in seconds.

A change of a record takes only milliseconds. A process that holds the lock for seconds is probably suspended.
"""


def jobs_dir() -> Path:
    return state_dir() / "jobs"


def folder(key: str) -> Path:
    """Return the folder of the record with the key ``key``."""
    return jobs_dir() / key


def new_key(name: str) -> str:
    """Return a unique key for a new job: the job's name, the time to the second, and six random hexadecimal
    digits.
    """
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def save(record: JobRecord) -> None:
    """Write a record to disk; a process that reads meanwhile gets the whole old or the whole new record."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=2)
    LocalRunner().write(str(folder(record.key) / RECORD), text + b"\n", 0o600)


def update(record: JobRecord, **changes: object) -> JobRecord:
    """Change fields of the record on disk, and return the changed record.

    The state of an ended job does not change back to pending, running or unknown, unless ``changes`` contain
    a new ``restarts`` or ``id``, which shows that the job has restarted. If another process has given the
    record a new job number, ``changes`` with a state are about the old job, and the function ignores them.
    """
    if "id" not in changes and not (folder(record.key) / RECORD).exists():
        # Another process has deleted the record, because sbatch refused the job.
        return msgspec.structs.replace(record, **changes)
    with _record_lock(folder(record.key)):
        now = _record_on_disk(record)
        if record.id and now.id != record.id and "state" in changes and "id" not in changes:
            return now
        changed = msgspec.structs.replace(now, **changes)
        known = (now.id, now.restarts) == (changed.id, changed.restarts)
        if known and now.state in FINAL_STATES and changed.state not in FINAL_STATES:
            changed = msgspec.structs.replace(changed, state=now.state, exit_code=now.exit_code)
        save(changed)
    return changed


def keep(record: JobRecord, name: str, content: bytes) -> None:
    """Write ``content`` to the file ``name`` in the record's folder."""
    LocalRunner().write(str(folder(record.key) / name), content, 0o600)


def every(on_damage: Callable[[str], None] = lambda _: None) -> list[JobRecord]:
    """Return all readable job records, oldest first; ``on_damage`` gets a message for each damaged record."""
    job_records = []
    for file in sorted(jobs_dir().glob(f"*/{RECORD}")):
        try:
            job_records.append(_read(file))
        except FileNotFoundError:
            continue  # another process has just deleted the record
        except BadInput as error:
            on_damage(error.message)
    return sorted(job_records, key=lambda record: (record.submitted, record.key))


def find(
    key: str | None, on_damage: Callable[[str], None] = lambda _: None, *, newest: bool = False
) -> JobRecord:
    """Return the job record that ``key`` identifies.

    ``key`` is the key of a record, the start of such a key, or one of the Slurm numbers of a record. If
    ``key`` is ``None``, the function returns the newest record. If ``newest`` is true and ``key`` is the name
    of several jobs, the function returns the newest record of these jobs. ``on_damage`` gets a message for
    each damaged record.

    Raises:
        BadInput: if no record or more than one record matches.
    """
    if key and "/" not in key:
        with contextlib.suppress(OSError, BadInput):
            return _read(folder(key) / RECORD)
    damaged: list[str] = []
    records = every(damaged.append)
    for message in damaged:
        on_damage(message)
    if damaged and not records:
        raise BadInput(
            f"{jobs_dir()}: no job record can be read", fix="move the damaged job records to another folder"
        )
    if not records:
        raise BadInput(
            "no job was launched from this machine yet",
            fix="launch a job, for example: `toolkit launch mnist --nodes 2`",
        )
    if key is None:
        return records[-1]
    exact = [r for r in records if r.key == key]
    matches = exact or [r for r in records if key in {r.id, *r.numbers} or r.key.startswith(key)]
    named = [r for r in matches if r.spec.name == key] if newest else []
    if len(matches) == 1 or named:
        return (named or matches)[-1]
    names = ", ".join(r.key for r in (matches or records)[-5:])
    fault = "matches several jobs" if matches else "not found; the newest jobs are"
    raise BadInput(f"job '{key}': {fault}: {names}", fix="list all jobs: `toolkit jobs list`")


def require_check(record: JobRecord) -> None:
    """Raise an error if the record does not contain the result of the signature check of the image.

    Raises:
        CheckFailed: if the result is missing, as in records of early releases of toolkit, which did not check
            signatures.
    """
    if record.image_check is None:
        raise CheckFailed(
            f"{record.key}: the job record does not say whether toolkit checked the image's signature",
            fix=f"launch the job again: `toolkit launch --from-job {record.key}`",
        )


def any_kept() -> bool:
    """Return whether a job record exists, readable or damaged."""
    return any(jobs_dir().glob(f"*/{RECORD}"))


def forget(record: JobRecord) -> None:
    """Delete the record of a job whose submission failed."""
    shutil.rmtree(folder(record.key), ignore_errors=True)


@contextlib.contextmanager
def _record_lock(record_folder: Path) -> Iterator[None]:
    """Lock a record; after five seconds, or if the file system has no locks, continue without the lock."""
    record_folder.mkdir(parents=True, exist_ok=True)
    with (record_folder / _LOCK).open("a") as file:
        deadline = time.monotonic() + _LOCK_SECONDS
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_LOCK_PAUSE)
            except OSError:  # some network file systems have no locks
                break
        yield


def _record_on_disk(record: JobRecord) -> JobRecord:
    """Return the record on disk, or ``record`` if toolkit cannot read the file."""
    try:
        return _read(folder(record.key) / RECORD)
    except (OSError, BadInput):
        return record


def _read(file: Path) -> JobRecord:
    try:
        return msgspec.json.decode(file.read_bytes(), type=JobRecord)
    except FileNotFoundError:
        raise
    except (*DECODE_ERRORS, OSError) as error:
        raise BadInput(f"{file}: not a job record: {error}") from error
