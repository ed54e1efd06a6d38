"""Follow a job until its work is done: pass on new output, and each change of its state in Slurm.

If Slurm starts the job again, or the job submits itself again before its time limit, toolkit follows the new
run.
"""

import dataclasses
import itertools
import posixpath
import time
from collections.abc import Callable, Iterator

from toolkit.errors import Missing
from toolkit.launch.tracking import jobs, process, records
from toolkit.launch.tracking.reasons import waits_for_turn
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.run.command import Runner
from toolkit.run.ends import PIECE, Ends, pieces
from toolkit.run.lines import Lines
from toolkit.run.patience import OnLost, Patient

_OUTPUT_SECONDS, _EARLY_SECONDS = 0.5, 0.05
"""Seconds between two reads of the output; the second number holds until ``_EARLY`` seconds have passed."""

_EARLY = 10.0
"""Seconds in which most short jobs start and end."""

_PIECES = 16
"""After this many pieces of new output, the next query of Slurm may start."""

_METRICS_SECONDS, _METRICS_BYTES = 2.0, 50_000
"""Seconds between two reads of the metrics, and the bytes of metrics to read per second."""

_PLACE_SECONDS = 30.0
"""Seconds between two queries of the queue, whose answer may hold thousands of jobs."""

_FIRST_QUERY, _LAST_QUERY = 1.0, 10.0
"""Seconds between two queries of Slurm, at first and later; a controller serves thousands of users."""

_AGAIN_SECONDS = 0.1
"""Seconds until toolkit asks again if the script of a job has ended and Slurm calls the job running; doubled
each time, up to the first of the seconds above."""

_SILENT_SECONDS = 600.0
"""After this many seconds without an answer, toolkit gives up on Slurm, or on a lost connection.

Until then, a controller may be restarting or moving to another machine."""

_SETTLE_SECONDS = 1.0
"""Seconds that toolkit waits for a shared file system to show the last lines of a job that has ended."""

OnMetrics = Callable[[bytes], None]
"""Called with the content of the metrics file after each read, even without a change."""


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
    """Pass the job's output to ``on_line`` until the job has ended; return the final record.

    For a job of ``launch --local``, toolkit reads the state from this machine instead of from Slurm. The
    output is saved beside the record in every case, also after an error. ``on_again`` is called if a job with
    a new number resumes this job. ``on_lost`` is called when the connection breaks; toolkit then
    retries it for ten minutes.

    Raises:
        Missing: if the host stays unreachable, or Slurm does not answer for ten minutes.
    """
    runner = Patient(runner, on_lost, _SILENT_SECONDS)
    here = jobs.is_local(record)
    record = record if here else jobs.find_number(runner, record)
    folder = record.spec.directory
    reader = _Tail(runner, jobs.output_of(record), on_line)
    metrics = _Metrics(runner, posixpath.join(folder, records.METRICS), on_metrics) if on_metrics else None

    def look() -> bool:
        new = reader.read()
        if metrics:
            metrics.look()
        return new

    try:
        while True:
            for status in (_states_here if here else _states)(runner, record, look):
                on_state(status)
                _wait_for_word(runner, record, status)
                record = jobs.write_status(record, status)
            _settle(reader, jobs.size_of_output(runner, record) if record.state == "completed" else None)
            if metrics:
                metrics.look(at_once=True)
            # The process that launched or cancelled a local job wrote its end into the record.
            record = jobs.conclude(runner, records.find(record.key) if here else record)
            if record.state != "pending":
                return record
            reader.turn_to(jobs.output_of(record))
            on_again(record)
    finally:
        records.keep(record, records.OUTPUT, reader.seen.content())


def give_up(runner: Runner, silent: float, fix: str = "") -> None:
    """Give up if Slurm has not answered for ``silent`` seconds and this is longer than the limit.

    Raises:
        Missing: if the time is longer than the limit.
    """
    if silent >= _SILENT_SECONDS:
        raise Missing(
            f"Slurm on {runner.place} has not answered for {silent / 60:.0f} minutes; the job may still run",
            fix=fix,
        )


class _Metrics:
    """Reads the whole metrics file at intervals, because a run that resumes writes the file again."""

    def __init__(self, runner: Runner, path: str, on_metrics: OnMetrics) -> None:
        self._runner, self._path, self._on_metrics = runner, path, on_metrics
        self._next = 0.0

    def look(self, *, at_once: bool = False) -> None:
        if at_once or time.monotonic() >= self._next:
            content = self._runner.read(self._path, most=records.METRICS_MOST)
            self._on_metrics(content)
            self._next = time.monotonic() + max(_METRICS_SECONDS, len(content) / _METRICS_BYTES)


class _Tail:
    """Reads the bytes added to a file since the last read, and passes on whole lines."""

    def __init__(self, runner: Runner, path: str, on_line: Callable[[str], None]) -> None:
        self._runner, self._path = runner, path
        self._lines = Lines(on_line)
        self._offset = 0
        self.seen = Ends()

    def has(self, size: int | None) -> bool:
        """Return whether this is all of an output of ``size`` bytes; ``None`` if the size is unknown."""
        return size is not None and self._offset >= size

    def turn_to(self, path: str) -> None:
        """Read from ``path`` from now on."""
        if path != self._path:
            self._path, self._offset = path, 0

    def read(self) -> bool:
        """Pass on new lines; return False without new lines.

        A call reads a limited number of pieces, so that fast output does not delay the next query of Slurm.
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
        """Pass on a last line that has no line break."""
        self._lines.end()


def _states(runner: Runner, record: JobRecord, look: Callable[[], bool]) -> Iterator[JobStatus]:
    """Yield Slurm's answers until a final one, reading output in between.

    ``look`` reads the output, and returns whether there was new output.
    """
    pause, heard, running = _FIRST_QUERY, time.monotonic(), record.state == "running"
    queue, began, signs = _Queue(runner, record), time.monotonic(), _Signs(runner, record)
    while True:
        status = jobs.query(runner, record.id)
        asked = time.monotonic()
        if status.answer == "silent":
            # A run before a requeue may have written an exit status, so it counts only once the job runs.
            left = jobs.left_status(runner, record) if running else None
            if left is not None and not (left == jobs.STOPPED_STATUS and record.spec.may_resume):
                yield JobStatus("unknown", answer="forgotten")
                return
            give_up(runner, asked - heard)
        else:
            heard, running = asked, status.state == "running"
        yield queue.with_place(status)
        if status.state in FINAL_STATES or status.answer == "forgotten":
            return
        while (passed := time.monotonic() - asked) < pause:
            wrote = look()
            if signs.of_end(passed) if running else signs.of_start(wrote=wrote):
                break
            early = time.monotonic() - began < _EARLY
            time.sleep(min(_OUTPUT_SECONDS, _EARLY_SECONDS) if early else _OUTPUT_SECONDS)
        pause = min(pause * 1.5, _LAST_QUERY)


class _Signs:
    """Signs in the files of a job that Slurm's answer has changed.

    Reading a file is faster than a query, and spares the controller.
    """

    def __init__(self, runner: Runner, record: JobRecord) -> None:
        self._runner, self._record = runner, record
        self._started, self._wait = False, 0.0

    def of_start(self, *, wrote: bool) -> bool:
        """Return whether a job that waits has begun: its first output is there."""
        first, self._started = wrote and not self._started, self._started or wrote
        return first

    def of_end(self, passed: float) -> bool:
        """Return whether the script of a running job has ended: it wrote its last file.

        ``passed`` are the seconds since the last query. Slurm registers the end a moment later.
        """
        if passed < self._wait or jobs.left_status(self._runner, self._record) is None:
            return False
        self._wait = min(max(self._wait * 2, _AGAIN_SECONDS), _FIRST_QUERY)
        return True


def _states_here(runner: Runner, record: JobRecord, look: Callable[[], bool]) -> Iterator[JobStatus]:
    """Yield one state, "running", for a local job; then read its output until the job has ended."""
    yield JobStatus("running", nodes=record.nodes)
    while _runs_here(runner, record):
        look()
        time.sleep(_OUTPUT_SECONDS)


def _runs_here(runner: Runner, record: JobRecord) -> bool:
    """Return whether a local job still runs; if bash never started, only the record shows its end."""
    if records.find(record.key).state in FINAL_STATES or process.is_lost(record):
        return False
    return jobs.left_status(runner, record) is None


class _Queue:
    """Adds the place in the queue to an answer, and asks Slurm for it at intervals."""

    def __init__(self, runner: Runner, record: JobRecord) -> None:
        self._runner, self._record = runner, record
        self._asked, self._place = float("-inf"), (0, 0)

    def with_place(self, status: JobStatus) -> JobStatus:
        if status.state != "pending" or not waits_for_turn(status.reason):
            return status
        if time.monotonic() - self._asked >= _PLACE_SECONDS:
            self._asked = time.monotonic()
            self._place = jobs.place_in_queue(self._runner, self._record, status.partition) or (0, 0)
        return dataclasses.replace(status, place=self._place)


def _wait_for_word(runner: Runner, record: JobRecord, status: JobStatus) -> None:
    """Wait until Slurm reports whether another job resumes this job, before toolkit records the end."""
    began = time.monotonic()
    while jobs.may_have_successor(record, status) and not jobs.slurm_lists_jobs(runner, record):
        give_up(runner, time.monotonic() - began)
        time.sleep(_FIRST_QUERY)


def _settle(reader: _Tail, size: int | None) -> None:
    """Read until nothing new comes for a second, or until all ``size`` bytes are read."""
    reader.read()
    quiet_since = time.monotonic()
    while not reader.has(size) and time.monotonic() - quiet_since < _SETTLE_SECONDS:
        if reader.read():
            quiet_since = time.monotonic()
        time.sleep(_OUTPUT_SECONDS / 2)
    reader.end()
