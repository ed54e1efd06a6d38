"""Follow a job to its end: hand over its output as it grows, and Slurm's answers as they change.

The end is that of the work, not of one run: a job that Slurm starts again, or that had itself submitted again
before its time was up, is followed on.
"""

import dataclasses
import itertools
import posixpath
import time
from collections.abc import Callable, Iterator

from toolkit.errors import Missing
from toolkit.launch.tracking import jobs, process, records
from toolkit.launch.tracking.reasons import in_turn
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.run.command import Runner
from toolkit.run.ends import PIECE, Ends, pieces
from toolkit.run.lines import Lines
from toolkit.run.patience import OnLost, Patient

_OUTPUT_SECONDS = 0.5
"""How often new output is looked for."""

_PIECES = 16
"""How many pieces of new output are handed over before Slurm may be asked again."""

_METRICS_SECONDS, _METRICS_BYTES = 2.0, 50_000
"""How often new metrics are looked for, and how many bytes of them a second may cost."""

_PLACE_SECONDS = 30.0
"""How often it is asked who else waits: an answer may hold thousands of jobs."""

_FIRST_QUERY, _LAST_QUERY = 1.0, 10.0
"""How often Slurm is asked, at first and later: a controller serves thousands of people."""

_SILENT_SECONDS = 600.0
"""A controller may restart, or be moved to another machine; after this long it is taken for gone.

So is a connection that cannot be made anew."""

_SETTLE_SECONDS = 1.0
"""How long a shared file system is given to show the last lines of a job that has ended."""

OnMetrics = Callable[[bytes], None]
"""Takes the content of the metrics file, each time that it was looked at, changed or not."""


def follow(
    runner: Runner,
    record: JobRecord,
    on_line: Callable[[str], None],
    on_state: Callable[[JobStatus], None] = lambda _: None,
    *,
    on_metrics: OnMetrics | None = None,
    on_again: Callable[[JobRecord], None] = lambda _: None,
    on_lost: OnLost = lambda _: None,
) -> JobRecord:
    """Hand over the job's output as it grows until the job has ended; return the final record.

    One of ``launch --local`` is looked for on this machine, not asked of Slurm.
    The output is kept beside the record, however the following ends. ``on_again`` is told of a job that
    goes on where this one stopped, under a new number. A connection that breaks is made anew for minutes;
    ``on_lost`` is told that it broke.

    Raises:
        Missing: if the place is not reached any more, or Slurm there does not answer for minutes.
    """
    runner = Patient(runner, on_lost, _SILENT_SECONDS)
    here = jobs.is_local(record)
    record = record if here else jobs.numbered(runner, record)
    folder = record.spec.directory
    reader = _Tail(runner, jobs.output_of(record), on_line)
    metrics = _Metrics(runner, posixpath.join(folder, records.METRICS), on_metrics) if on_metrics else None

    def look() -> None:
        reader.read()
        if metrics:
            metrics.look()

    try:
        while True:
            for status in (_states_here if here else _states)(runner, record, look):
                on_state(status)
                _wait_for_word(runner, record, status)
                record = jobs.noted(record, status)
            _settle(reader)
            if metrics:
                metrics.look(at_once=True)
            # Whoever launched or cancelled one of this machine knows more of its end than its status tells.
            record = jobs.conclude(runner, records.find(record.key) if here else record)
            if record.state != "pending":
                return record
            reader.turn_to(jobs.output_of(record))
            on_again(record)
    finally:
        records.keep(record, records.OUTPUT, reader.seen.content())


def give_up(runner: Runner, silent: float, fix: str = "") -> None:
    """Take a controller for gone that has been silent for so many seconds, if they are enough.

    Raises:
        Missing: if they are.
    """
    if silent >= _SILENT_SECONDS:
        raise Missing(
            f"Slurm on {runner.place} has not answered for {silent / 60:.0f} minutes; the job may go on",
            fix=fix,
        )


class _Metrics:
    """Reads the metrics now and then, all of them: a run that goes on writes the file anew."""

    def __init__(self, runner: Runner, path: str, on_metrics: OnMetrics) -> None:
        self._runner, self._path, self._on_metrics = runner, path, on_metrics
        self._next = 0.0

    def look(self, *, at_once: bool = False) -> None:
        if at_once or time.monotonic() >= self._next:
            content = self._runner.read(self._path, most=records.METRICS_MOST)
            self._on_metrics(content)
            self._next = time.monotonic() + max(_METRICS_SECONDS, len(content) / _METRICS_BYTES)


class _Tail:
    """Reads what was added to a file since the last time and hands over whole lines."""

    def __init__(self, runner: Runner, path: str, on_line: Callable[[str], None]) -> None:
        self._runner, self._path = runner, path
        self._lines = Lines(on_line)
        self._offset = 0
        self.seen = Ends()

    def turn_to(self, path: str) -> None:
        """Read another file from now on, unless it is the same one."""
        if path != self._path:
            self._path, self._offset = path, 0

    def read(self) -> bool:
        """Hand over new lines; False if there was nothing new.

        Output that grows faster than it is read is left for the next call, so that Slurm is still asked.
        """
        before = self._offset
        for chunk in itertools.islice(pieces(self._runner, self._path, before), _PIECES):
            self._offset += len(chunk)
            self.seen.take(chunk)
            self._lines.take(chunk)
            if len(chunk) < PIECE:
                break
        return self._offset > before

    def end(self) -> None:
        """Hand over a last line that has no line break."""
        self._lines.end()


def _states(runner: Runner, record: JobRecord, look: Callable[[], None]) -> Iterator[JobStatus]:
    """Yield Slurm's answers until a final one, reading output in between."""
    pause, heard, running = _FIRST_QUERY, time.monotonic(), record.state == "running"
    queue = _Queue(runner, record)
    while True:
        status = jobs.query(runner, record.id)
        asked = time.monotonic()
        if status.answer == "silent":
            # A status left by a run before a requeue counts no more, hence: only once it runs.
            left = jobs.left_status(runner, record) if running else None
            if left is not None and not (left == jobs.STOPPED and record.spec.goes_on):
                yield JobStatus("unknown", answer="forgotten")
                return
            give_up(runner, asked - heard)
        else:
            heard, running = asked, status.state == "running"
        yield queue.placed(status)
        if status.state in FINAL_STATES or status.answer == "forgotten":
            return
        while (passed := time.monotonic() - asked) < pause:
            look()
            # The script's last act; a look at a file spares the controller and tells sooner.
            if running and passed >= _FIRST_QUERY and jobs.left_status(runner, record) is not None:
                break
            time.sleep(_OUTPUT_SECONDS)
        pause = min(pause * 1.5, _LAST_QUERY)


def _states_here(runner: Runner, record: JobRecord, look: Callable[[], None]) -> Iterator[JobStatus]:
    """Yield once that a job of this machine runs; end when it has, reading output in between."""
    yield JobStatus("running", nodes=record.nodes)
    while _runs_here(runner, record):
        look()
        time.sleep(_OUTPUT_SECONDS)


def _runs_here(runner: Runner, record: JobRecord) -> bool:
    """Tell whether a job of this machine goes on; one that bash never began leaves a record alone."""
    if records.find(record.key).state in FINAL_STATES or process.lost(record):
        return False
    return jobs.left_status(runner, record) is None


class _Queue:
    """Adds to an answer the place in the queue, asked for now and then."""

    def __init__(self, runner: Runner, record: JobRecord) -> None:
        self._runner, self._record = runner, record
        self._asked, self._place = float("-inf"), (0, 0)

    def placed(self, status: JobStatus) -> JobStatus:
        if status.state != "pending" or not in_turn(status.reason):
            return status
        if time.monotonic() - self._asked >= _PLACE_SECONDS:
            self._asked = time.monotonic()
            self._place = jobs.place_in_queue(self._runner, self._record, status.partition) or (0, 0)
        return dataclasses.replace(status, place=self._place)


def _wait_for_word(runner: Runner, record: JobRecord, status: JobStatus) -> None:
    """Let no end be written down before Slurm says whether another job goes on from there."""
    began = time.monotonic()
    while jobs.may_go_on(record, status) and not jobs.says_which(runner, record):
        give_up(runner, time.monotonic() - began)
        time.sleep(_FIRST_QUERY)


def _settle(reader: _Tail) -> None:
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _SETTLE_SECONDS:
        if reader.read():
            quiet_since = time.monotonic()
        time.sleep(_OUTPUT_SECONDS / 2)
    reader.end()
