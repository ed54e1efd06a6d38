"""Records of what was launched: a folder a job under the person's state folder, each file replaced whole.

Several processes may have to do with one job: a reader never sees half a record, and a change is made to the
record as it is, under a lock, not to the copy that a process read minutes ago.
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
from toolkit.decoding import UNDECODABLE
from toolkit.errors import BadInput, CheckFailed
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.run.local import LocalRunner

RECORD = "record.json"
SCRIPT = "job.sh"
OUTPUT = "output.log"
METRICS = "metrics.jsonl"
"""Files of a record's folder; the job's own folder on the cluster has the last three too."""

METRICS_MOST = 64 << 20
"""Bytes of a metrics file that are read: an epoch takes some 300 of them."""

_LOCK = ".lock"
_LOCK_SECONDS, _LOCK_PAUSE = 5.0, 0.01
"""A change takes milliseconds; whoever holds the lock for longer was stopped in the middle of one."""


def jobs_dir() -> Path:
    return state_dir() / "jobs"


def folder(key: str) -> Path:
    """Return the folder of one record, which :mod:`toolkit.report` reads."""
    return jobs_dir() / key


def new_key(name: str) -> str:
    """Make a name for a job that no other process makes at the same time."""
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def save(record: JobRecord) -> None:
    """Write a record; a reader sees the old one or the new one, never a part."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=2)
    LocalRunner().write(str(folder(record.key) / RECORD), text + b"\n", 0o600)


def update(record: JobRecord, **changes: object) -> JobRecord:
    """Change fields of a record as it is now, whoever wrote it last, and return it whole.

    A job that another process saw come to its end does not go on because of an answer from before; it may
    where Slurm started it again since, which ``restarts`` or ``id`` tells. What Slurm said of a number is not
    put down for the one that goes on in its place, which another process has found meanwhile.
    """
    if "id" not in changes and not (folder(record.key) / RECORD).exists():
        # Forgotten meanwhile, as sbatch refused the job; only a number of Slurm's says that there is one.
        return msgspec.structs.replace(record, **changes)
    with _locked(folder(record.key)):
        now = _kept(record)
        if record.id and now.id != record.id and "state" in changes and "id" not in changes:
            return now
        changed = msgspec.structs.replace(now, **changes)
        known = (now.id, now.restarts) == (changed.id, changed.restarts)
        if known and now.state in FINAL_STATES and changed.state not in FINAL_STATES:
            changed = msgspec.structs.replace(changed, state=now.state, exit_code=now.exit_code)
        save(changed)
    return changed


def keep(record: JobRecord, name: str, content: bytes) -> None:
    """Write a file beside the record."""
    LocalRunner().write(str(folder(record.key) / name), content, 0o600)


def every(on_damage: Callable[[str], None] = lambda _: None) -> list[JobRecord]:
    """Return all records, the oldest first; one that cannot be read is told and passed over."""
    found = []
    for file in sorted(jobs_dir().glob(f"*/{RECORD}")):
        try:
            found.append(_read(file))
        except FileNotFoundError:
            continue  # forgotten in the meantime
        except BadInput as error:
            on_damage(error.message)
    return sorted(found, key=lambda record: (record.submitted, record.key))


def find(
    wanted: str | None, on_damage: Callable[[str], None] = lambda _: None, *, newest: bool = False
) -> JobRecord:
    """Find a record by key, by the start of one, or by any number of Slurm's; the last one for ``None``.

    With ``newest``, the last of several jobs with the name ``wanted`` is meant.

    Raises:
        BadInput: if there is none, or more than one.
    """
    if wanted and "/" not in wanted:
        with contextlib.suppress(OSError, BadInput):
            return _read(folder(wanted) / RECORD)
    damaged: list[str] = []
    records = every(damaged.append)
    for message in damaged:
        on_damage(message)
    if damaged and not records:
        raise BadInput(f"no record of a job can be read in {jobs_dir()}", fix="move the damaged ones away")
    if not records:
        raise BadInput("no job was launched from here yet", fix="toolkit launch mnist --nodes 2")
    if wanted is None:
        return records[-1]
    exact = [r for r in records if r.key == wanted]
    matches = exact or [r for r in records if wanted in {r.id, *r.numbers} or r.key.startswith(wanted)]
    named = [r for r in matches if r.spec.name == wanted] if newest else []
    if len(matches) == 1 or named:
        return (named or matches)[-1]
    names = ", ".join(r.key for r in (matches or records)[-5:])
    kind = "more than one job is called" if matches else "there is no job"
    raise BadInput(f"{kind} '{wanted}'; the last ones: {names}", fix="toolkit jobs list")


def require_check(record: JobRecord) -> None:
    """Refuse to start a job of which no gate has checked the image.

    Raises:
        CheckFailed: if the record has no check, as those of early releases.
    """
    if record.image_check is None:
        raise CheckFailed(
            f"{record.key}: its image was not checked", fix=f"toolkit launch --from-job {record.key}"
        )


def any_kept() -> bool:
    """Tell whether there is any record of a job, be it damaged."""
    return any(jobs_dir().glob(f"*/{RECORD}"))


def forget(record: JobRecord) -> None:
    """Remove a record whose job never came to be."""
    shutil.rmtree(folder(record.key), ignore_errors=True)


@contextlib.contextmanager
def _locked(where: Path) -> Iterator[None]:
    """Hold the lock of a record; without one where the file system has none, or somebody keeps it."""
    where.mkdir(parents=True, exist_ok=True)
    with (where / _LOCK).open("a") as file:
        deadline = time.monotonic() + _LOCK_SECONDS
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_LOCK_PAUSE)
            except OSError:  # some network file systems know no locks
                break
        yield


def _kept(record: JobRecord) -> JobRecord:
    """Return a record as it is on disk, or the given one where there is none to be read."""
    try:
        return _read(folder(record.key) / RECORD)
    except (OSError, BadInput):
        return record


def _read(file: Path) -> JobRecord:
    try:
        return msgspec.json.decode(file.read_bytes(), type=JobRecord)
    except FileNotFoundError:
        raise
    except (*UNDECODABLE, OSError) as error:
        raise BadInput(f"{file}: not a job record: {error}") from error
