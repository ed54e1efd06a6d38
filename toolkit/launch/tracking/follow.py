"""Follow a job until the job ends: report the job's new output and its state in Slurm.

If Slurm restarts the job, or the job resubmits itself before its time limit, toolkit follows the new run.
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
from toolkit.run.patience import OnLost, PatientRunner

_OUTPUT_SECONDS, _EARLY_SECONDS = 0.5, 0.05
"""The pause in seconds between two reads of the output: normally, and during the first ``_EARLY`` seconds
after toolkit starts to follow a run of the job."""

_EARLY = 10.0
"""For this time in seconds after toolkit starts to follow a run, it reads the output every
``_EARLY_SECONDS``. Most short jobs end within this time."""

_PIECES = 16
"""The maximum number of output chunks that toolkit reads before it checks whether to query Slurm."""

_METRICS_SECONDS, _METRICS_BYTES = 2.0, 50_000
"""The minimum time in seconds between two reads of the metrics file, and the maximum average speed of these
reads in bytes per second. toolkit reads a large file less often."""

_PLACE_SECONDS = 30.0
"""The time in seconds between two queries for the job's place in the queue; the output of such a query may
list thousands of jobs."""

_FIRST_QUERY, _LAST_QUERY = 1.0, 10.0
"""The first and the largest pause, in seconds, between two queries of Slurm.

toolkit increases the pause after each query, because Slurm's controller serves thousands of users.
"""

_AGAIN_SECONDS = 0.1
"""The first pause, in seconds, before toolkit queries Slurm again about a job whose script has ended.

Slurm may still report the ended job as running. Each further pause is twice as long as the previous pause,
but at most one second.
"""

_SILENT_SECONDS = 600.0
"""The time in seconds after which toolkit gives up if Slurm does not answer or the connection stays broken.

A restart of Slurm's controller, or a failover to its backup, takes less time.
"""

_SETTLE_SECONDS = 1.0
"""The time in seconds without new output after which toolkit stops reading the output of an ended job.

A shared file system may show the last lines of the output late.
"""

OnMetrics = Callable[[bytes], None]
"""A function that receives the content of the metrics file after each read, even if the content is
unchanged."""


def follow(
    runner: Runner,
    record: JobRecord,
    on_line: Callable[[str], None],
    on_state: Callable[[JobStatus], None] = lambda _: None,
    *,
    on_metrics: OnMetrics | None = None,
    on_resume: Callable[[JobRecord], None] = lambda _: None,
    on_lost: OnLost = lambda _: None,
) -> JobRecord:
    """Pass the job's output to ``on_line`` until the job ends, and return the final record.

    For a job of ``launch --local``, toolkit reads the state from this machine and not from Slurm. toolkit
    saves a copy of the output in the record's folder, even after an error. toolkit passes each status of the
    job to ``on_state``. If another Slurm job resumes this job, toolkit passes the updated record to
    ``on_resume`` and follows that Slurm job. If the connection breaks, toolkit passes the reason to
    ``on_lost`` and retries for ten minutes.

    Raises:
        Missing: if the host is unreachable for ten minutes, or Slurm does not answer for ten minutes.
    """
    runner = PatientRunner(runner, on_lost, _SILENT_SECONDS)
    local = jobs.is_local(record)
    record = record if local else jobs.find_number(runner, record)
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
            for status in (_states_here if local else _states)(runner, record, look):
                on_state(status)
                _wait_for_word(runner, record, status)
                record = jobs.write_status(record, status)
            _settle(reader, jobs.size_of_output(runner, record) if record.state == "completed" else None)
            if metrics:
                metrics.look(immediate=True)
            # Another process may have recorded the end of a local job, so read the record again.
            record = jobs.conclude(runner, records.find(record.key) if local else record)
            if record.state != "pending":
                return record
            reader.turn_to(jobs.output_of(record))
            on_resume(record)
    finally:
        records.keep(record, records.OUTPUT, reader.seen.content())


def give_up(runner: Runner, silent: float, fix: str = "") -> None:
    """Raise an error if Slurm has not answered for ten minutes or longer.

    ``silent`` is the time without an answer, in seconds. ``fix`` is the hint of the error message.

    Raises:
        Missing: if ``silent`` is at least ten minutes.
    """
    if silent >= _SILENT_SECONDS:
        raise Missing(
            f"Slurm on {runner.place} has not answered for {silent / 60:.0f} minutes; the job may still run",
            fix=fix,
        )


class _Metrics:
    """Reads the whole metrics file at intervals, because a resumed run rewrites the file from its start."""

    def __init__(self, runner: Runner, path: str, on_metrics: OnMetrics) -> None:
        self._runner, self._path, self._on_metrics = runner, path, on_metrics
        self._next = 0.0

    def look(self, *, immediate: bool = False) -> None:
        if immediate or time.monotonic() >= self._next:
            content = self._runner.read(self._path, limit=records.METRICS_MOST)
            self._on_metrics(content)
            self._next = time.monotonic() + max(_METRICS_SECONDS, len(content) / _METRICS_BYTES)


class _Tail:
    """Reads the new bytes of a growing output file, and passes complete lines to a function."""

    def __init__(self, runner: Runner, path: str, on_line: Callable[[str], None]) -> None:
        self._runner, self._path = runner, path
        self._lines = Lines(on_line)
        self._offset = 0
        self.seen = Ends()

    def has(self, size: int | None) -> bool:
        """Return whether toolkit has read all ``size`` bytes of the output; False if ``size`` is ``None``."""
        return size is not None and self._offset >= size

    def turn_to(self, path: str) -> None:
        """Read ``path`` in later calls of ``read``, from the beginning of the file.

        If ``path`` is already the current file, later calls continue after the bytes already read.
        """
        if path != self._path:
            self._path, self._offset = path, 0

    def read(self) -> bool:
        """Pass new lines to the function, and return whether the file had new bytes.

        Each call reads at most ``_PIECES`` chunks. Without this limit, a job that writes fast would delay the
        next query of Slurm.
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
        """Pass the last line to the function, even if the line has no line break."""
        self._lines.end()


def _states(runner: Runner, record: JobRecord, read_output: Callable[[], bool]) -> Iterator[JobStatus]:
    """Yield the job's states in Slurm until the job ends, and read the output between two queries.

    ``read_output`` is a function that reads the output, and returns whether the job wrote new output.
    """
    pause, last_answer, running = _FIRST_QUERY, time.monotonic(), record.state == "running"
    queue, began, signs = _Queue(runner, record), time.monotonic(), _Signs(runner, record)
    while True:
        status = jobs.query(runner, record.id)
        query_start = time.monotonic()
        if status.answer == "silent":
            # A requeued job has a file with the exit status of its previous run, until the job starts again.
            # Therefore, read the exit status only while the job runs.
            left = jobs.left_status(runner, record) if running else None
            if left is not None and not (left == jobs.STOPPED_STATUS and record.spec.may_resume):
                yield JobStatus("unknown", answer="forgotten")
                return
            give_up(runner, query_start - last_answer)
        else:
            last_answer, running = query_start, status.state == "running"
        yield queue.with_place(status)
        if status.state in FINAL_STATES or status.answer == "forgotten":
            return
        while (passed := time.monotonic() - query_start) < pause:
            wrote = read_output()
            if signs.of_end(passed) if running else signs.of_start(new_output=wrote):
                break
            early = time.monotonic() - began < _EARLY
            time.sleep(min(_OUTPUT_SECONDS, _EARLY_SECONDS) if early else _OUTPUT_SECONDS)
        pause = min(pause * 1.5, _LAST_QUERY)


class _Signs:
    """Detects from the job's files that the job's state in Slurm has probably changed.

    Reading a file is faster than querying Slurm, and puts no load on Slurm's controller.
    """

    def __init__(self, runner: Runner, record: JobRecord) -> None:
        self._runner, self._record = runner, record
        self._started, self._wait = False, 0.0

    def of_start(self, *, new_output: bool) -> bool:
        """Return whether a waiting job has just written its first output. Such output shows that the job has
        started.

        ``new_output`` is true if the last read of the output found new output.
        """
        first, self._started = new_output and not self._started, self._started or new_output
        return first

    def of_end(self, seconds: float) -> bool:
        """Return whether a running job's exit status file exists, which shows that the job script has ended.

        ``seconds`` is the time since the last query of Slurm, in seconds. Slurm may still report the job as
        running after the file appears. Therefore, the function returns True again only after a pause, which
        grows with each call that returns True.
        """
        if seconds < self._wait or jobs.left_status(self._runner, self._record) is None:
            return False
        self._wait = min(max(self._wait * 2, _AGAIN_SECONDS), _FIRST_QUERY)
        return True


def _states_here(runner: Runner, record: JobRecord, read_output: Callable[[], bool]) -> Iterator[JobStatus]:
    """Yield the state ``running`` once for a local job; then read the output until the job ends."""
    yield JobStatus("running", nodes=record.nodes)
    while _runs_here(runner, record):
        read_output()
        time.sleep(_OUTPUT_SECONDS)


def _runs_here(runner: Runner, record: JobRecord) -> bool:
    """Return whether a local job still runs, according to its record, its process and its exit status file.

    If bash did not start, the job has no exit status file, and only the record shows that the job has ended.
    """
    if records.find(record.key).state in FINAL_STATES or process.is_lost(record):
        return False
    return jobs.left_status(runner, record) is None


class _Queue:
    """Adds a waiting job's place in the queue to its status.

    The class asks Slurm for the place at most every 30 seconds, and reuses the last answer between queries.
    """

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
    """If the job has ended and another job may resume it, wait until Slurm can list the user's jobs.

    Only this list shows whether another job resumes the ended job.
    """
    began = time.monotonic()
    while jobs.may_have_successor(record, status) and not jobs.slurm_lists_jobs(runner, record):
        give_up(runner, time.monotonic() - began)
        time.sleep(_FIRST_QUERY)


def _settle(reader: _Tail, size: int | None) -> None:
    """Read an ended job's output until all ``size`` bytes have arrived, or no new bytes arrive for a second.

    If ``size`` is ``None``, the size of the output is unknown.
    """
    reader.read()
    quiet_since = time.monotonic()
    while not reader.has(size) and time.monotonic() - quiet_since < _SETTLE_SECONDS:
        if reader.read():
            quiet_since = time.monotonic()
        time.sleep(_OUTPUT_SECONDS / 2)
    reader.end()
