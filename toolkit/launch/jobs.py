"""Submit a job, follow it to its end, cancel it; the door between records and Slurm."""

import posixpath
import time
from collections.abc import Callable, Iterator

import msgspec

from toolkit.errors import CheckFailed
from toolkit.launch import records, slurm
from toolkit.launch.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.run.command import Runner

_OUTPUT_SECONDS = 0.5
"""How often new output is looked for."""

_FIRST_QUERY, _LAST_QUERY = 1.0, 10.0
"""How often Slurm is asked, at first and later: a controller serves thousands of people."""

_SETTLE_SECONDS = 1.0
"""How long a shared file system is given to show the last lines of a job that has ended."""


def submit(runner: Runner, record: JobRecord, script: str) -> JobRecord:
    """Write the script into the job's folder, submit it, and return the record with Slurm's number.

    Raises:
        CheckFailed: with sbatch's own words, if it refuses; then no record is left.
    """
    path = posixpath.join(record.spec.directory, records.SCRIPT)
    records.save(record)
    try:
        records.keep(record, records.SCRIPT, script.encode())
        runner.write(path, script.encode(), 0o755)
        number = _sbatch(runner, path, record.spec.directory)
    except BaseException:
        records.forget(record)
        raise
    record = msgspec.structs.replace(record, id=number)
    records.save(record)
    return record


def follow(
    runner: Runner,
    record: JobRecord,
    on_line: Callable[[str], None],
    on_state: Callable[[JobStatus], None] = lambda _: None,
) -> JobRecord:
    """Hand over the job's output as it grows until the job has ended; return the final record.

    The output and the metrics are kept beside the record, however the following ends.
    """
    reader = _Tail(runner, posixpath.join(record.spec.directory, records.OUTPUT), on_line)
    try:
        for status in _states(runner, record, reader.read):
            on_state(status)
            if (status.state, status.exit_code) != (record.state, record.exit_code):
                record = msgspec.structs.replace(record, state=status.state, exit_code=status.exit_code)
                records.save(record)
        _settle(reader)
    finally:
        records.keep(record, records.OUTPUT, bytes(reader.seen))
    record = _closed(runner, record)
    if metrics := runner.read(posixpath.join(record.spec.directory, records.METRICS)):
        records.keep(record, records.METRICS, metrics)
    return record


def refresh(runner: Runner, record: JobRecord) -> JobRecord:
    """Ask Slurm once what became of a job and keep the answer."""
    if record.state in FINAL_STATES:
        return record
    status = query(runner, record.id)
    record = msgspec.structs.replace(record, state=status.state, exit_code=status.exit_code)
    record = _closed(runner, record)
    records.save(record)
    return record


def query(runner: Runner, number: str) -> JobStatus:
    """Ask the controller, then the accounting; ``unknown`` if neither remembers the job."""
    answer = runner.run(slurm.show_job(number))
    if answer.ok and (status := slurm.parse_show_job(answer.text)):
        return status
    answer = runner.run(slurm.account(number))
    if answer.ok and (status := slurm.parse_account(answer.text)):
        return status
    return JobStatus("unknown")


def cancel(runner: Runner, record: JobRecord) -> JobRecord:
    """Ask Slurm to end a job."""
    runner.run(slurm.scancel(record.id)).require(f"cancelling job {record.id} on {runner.place}")
    record = msgspec.structs.replace(record, state="cancelled")
    records.save(record)
    return record


def _sbatch(runner: Runner, script: str, directory: str) -> str:
    answer = runner.run(slurm.sbatch(script, directory))
    if not answer.ok:
        raise CheckFailed(
            f"sbatch on {runner.place} refused the job: {_reason(answer.errors)}",
            fix="change the option that it names; --dry-run shows the script",
            detail=answer.errors.strip().splitlines()[-5:],
        )
    return slurm.parse_sbatch(answer.text)


class _Tail:
    """Reads what was added to a file since the last time and hands over whole lines."""

    def __init__(self, runner: Runner, path: str, on_line: Callable[[str], None]) -> None:
        self._runner, self._path, self._on_line = runner, path, on_line
        self._rest = b""
        self.seen = bytearray()

    def read(self) -> bool:
        """Hand over new lines; False if there was nothing new."""
        chunk = self._runner.read(self._path, len(self.seen))
        self.seen += chunk
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._on_line(line.decode("utf-8", "replace"))
        return bool(chunk)

    def end(self) -> None:
        """Hand over a last line that has no line break."""
        if self._rest:
            self._on_line(self._rest.decode("utf-8", "replace"))
            self._rest = b""


def _states(runner: Runner, record: JobRecord, read: Callable[[], bool]) -> Iterator[JobStatus]:
    """Yield Slurm's answers until a final one, reading output in between."""
    pause, unknown = _FIRST_QUERY, 0
    while True:
        status = query(runner, record.id)
        yield status
        unknown = unknown + 1 if status.state == "unknown" else 0
        # A controller that restarts forgets nothing; three answers in a row mean that the job is gone.
        if status.state in FINAL_STATES or unknown >= 3:
            return
        asked = time.monotonic()
        while (passed := time.monotonic() - asked) < pause:
            read()
            # The script's last act; a look at a file spares the controller and tells sooner.
            if passed >= _FIRST_QUERY and _left_status(runner, record) is not None:
                break
            time.sleep(_OUTPUT_SECONDS)
        pause = min(pause * 1.5, _LAST_QUERY)


def _settle(reader: _Tail) -> None:
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _SETTLE_SECONDS:
        if reader.read():
            quiet_since = time.monotonic()
        time.sleep(_OUTPUT_SECONDS / 2)
    reader.end()


def _closed(runner: Runner, record: JobRecord) -> JobRecord:
    """Complete a record from the status that the script left, where Slurm has forgotten the job."""
    if record.state != "unknown":
        return record
    left = _left_status(runner, record)
    if left is None:
        return record
    record = msgspec.structs.replace(record, state="failed" if left else "completed", exit_code=left)
    records.save(record)
    return record


def _left_status(runner: Runner, record: JobRecord) -> int | None:
    """Return the exit status that the script left behind, ``None`` while it runs."""
    text = runner.read(posixpath.join(record.spec.directory, "exit-code")).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None


def _reason(errors: str) -> str:
    """Return sbatch's sentence without its prefix."""
    lines = [line.removeprefix("sbatch: error: ").strip() for line in errors.splitlines() if line.strip()]
    return lines[-1] if lines else "without a word"
