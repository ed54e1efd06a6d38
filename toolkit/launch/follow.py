"""Follow a job to its end: hand over its output as it grows, and Slurm's answers as they change."""

import posixpath
import time
from collections.abc import Callable, Iterator

from toolkit.errors import Missing
from toolkit.launch import jobs, records
from toolkit.launch.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.run.command import Runner

_OUTPUT_SECONDS = 0.5
"""How often new output is looked for."""

_FIRST_QUERY, _LAST_QUERY = 1.0, 10.0
"""How often Slurm is asked, at first and later: a controller serves thousands of people."""

_SILENT_SECONDS = 600.0
"""A controller may restart, or be moved to another machine; after this long it is taken for gone."""

_SETTLE_SECONDS = 1.0
"""How long a shared file system is given to show the last lines of a job that has ended."""


def follow(
    runner: Runner,
    record: JobRecord,
    on_line: Callable[[str], None],
    on_state: Callable[[JobStatus], None] = lambda _: None,
) -> JobRecord:
    """Hand over the job's output as it grows until the job has ended; return the final record.

    The output is kept beside the record, however the following ends.

    Raises:
        Missing: if the place is not reached any more, or Slurm there does not answer for minutes.
    """
    reader = _Tail(runner, posixpath.join(record.spec.directory, records.OUTPUT), on_line)
    try:
        for status in _states(runner, record, reader.read):
            on_state(status)
            record = jobs.noted(record, status)
        _settle(reader)
    finally:
        records.keep(record, records.OUTPUT, bytes(reader.seen))
    return jobs.conclude(runner, record)


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
    pause, heard, running = _FIRST_QUERY, time.monotonic(), record.state == "running"
    while True:
        status = jobs.query(runner, record.id)
        asked = time.monotonic()
        if status.answer == "silent":
            # A status left by a run before a requeue counts no more, hence: only once it runs.
            if running and jobs.left_status(runner, record) is not None:
                yield JobStatus("unknown", answer="forgotten")
                return
            _give_up(runner, asked - heard)
        else:
            heard, running = asked, status.state == "running"
        yield status
        if status.state in FINAL_STATES or status.answer == "forgotten":
            return
        while (passed := time.monotonic() - asked) < pause:
            read()
            # The script's last act; a look at a file spares the controller and tells sooner.
            if passed >= _FIRST_QUERY and jobs.left_status(runner, record) is not None:
                break
            time.sleep(_OUTPUT_SECONDS)
        pause = min(pause * 1.5, _LAST_QUERY)


def _give_up(runner: Runner, silent: float) -> None:
    if silent >= _SILENT_SECONDS:
        raise Missing(
            f"Slurm on {runner.place} has not answered for {silent / 60:.0f} minutes; the job may go on"
        )


def _settle(reader: _Tail) -> None:
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _SETTLE_SECONDS:
        if reader.read():
            quiet_since = time.monotonic()
        time.sleep(_OUTPUT_SECONDS / 2)
    reader.end()
