"""Read the output of a job in chunks of limited size, from a copy on this machine or from the job's host."""

import codecs
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from toolkit.errors import Missing
from toolkit.job.running.reach import connect_to_job
from toolkit.launch.request.sweep_values import describe_values, rows
from toolkit.launch.tracking import jobs, records
from toolkit.model.job import FINAL_STATES, JobRecord, JobTask
from toolkit.model.progress import Tell
from toolkit.run.command import Runner
from toolkit.run.ends import Ends, is_cut, pieces
from toolkit.run.local import LocalRunner

_WAITING = {"pending"}

Reach = Callable[[JobRecord], contextlib.AbstractContextManager[Runner]]
"""A function that takes a job's record and returns a context manager with a connection to the job's host."""


def texts(record: JobRecord, tell: Tell, reach: Reach = connect_to_job) -> Iterator[str]:
    """Yield the output of a job as text; for an array, yield each task's output below a title line.

    toolkit reads the output of a running job on the job's host, and the output of an ended job on this
    machine. If an output has more than 8 MiB, the copy on this machine lacks the middle. toolkit then reads
    the output on the host, if ``reach`` can connect. Each text ends at the end of a line, unless the line is
    longer than a chunk.

    Raises:
        Missing: if this machine has no copy and the host is unreachable. For a task of an ended array,
            toolkit prints a warning instead.
    """
    tasks = [task for task in record.tasks if task.state not in _WAITING]
    values = {
        number: f": {describe_values(row)}" for number, row in enumerate(rows(record.spec.sweep)) if row
    }
    with contextlib.ExitStack() as stack:
        place = _OutputPlace(record, stack, reach)
        for task in tasks if record.tasks else (None,):
            title = f"==> task {task.index}{values.get(task.index, '')} <==\n" if task else ""
            for text in _decode_chunks(_bytes_of(record, task, place, tell)):
                yield title + text
                title = ""


def ends(record: JobRecord, tell: Tell) -> tuple[str, int]:
    """Return the start and the end of a job's output as text, and the number of bytes between them."""
    ends = Ends()
    for text in texts(record, tell):
        ends.take(text.encode("utf-8", "replace"))
    return ends.content().decode("utf-8", "replace"), ends.skipped


class _OutputPlace:
    """A connection to the host of a job; toolkit opens it at the first read, and tries only once."""

    def __init__(self, record: JobRecord, stack: contextlib.ExitStack, reach: Reach) -> None:
        self._record, self._stack, self._reach = record, stack, reach
        self._runner: Runner | None = None
        self._missing: Missing | None = None

    def runner(self) -> Runner:
        """Return a runner that reads files on the job's host.

        Raises:
            Missing: if the host is unreachable.
        """
        if self._missing is not None:
            raise self._missing
        if self._runner is None:
            try:
                self._runner = self._stack.enter_context(self._reach(self._record))
            except Missing as error:
                self._missing = error
                raise
        return self._runner


def _bytes_of(record: JobRecord, task: JobTask | None, place: _OutputPlace, tell: Tell) -> Iterator[bytes]:
    remote_file = jobs.output_of(record, task)
    name = f"{task.index}/{records.OUTPUT}" if task else records.OUTPUT
    local_file = str(records.folder(record.key) / name)
    ended = record.state in FINAL_STATES
    size = LocalRunner().size(local_file) if ended else 0
    if ended and task and Path(local_file).is_file() and not size:
        return  # the task wrote nothing
    if not size:
        try:
            yield from pieces(place.runner(), remote_file)
        except Missing as error:
            if not (ended and task):
                raise
            # Continue, because the output of the other tasks may be on this machine.
            tell.notice(f"warning: task {task.index}: no output on this machine, and {error.message}")
        return
    if is_cut(size):
        try:
            if place.runner().size(remote_file) > size:
                yield from pieces(place.runner(), remote_file)
                return
        except Missing as error:
            tell.notice(f"warning: {error.message}; the copy on this machine lacks the middle of the output")
    yield from pieces(LocalRunner(), local_file)


def _decode_chunks(chunks: Iterator[bytes]) -> Iterator[str]:
    """Decode UTF-8 chunks, and yield texts that end at the end of a line, unless the line is longer than a
    chunk.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    for chunk in chunks:
        whole, end, rest = (rest + decoder.decode(chunk)).rpartition("\n")
        if not end and len(rest) > len(chunk):  # the line is longer than a chunk
            whole, rest = rest, ""
        if whole or end:
            yield whole + end
    if rest := rest + decoder.decode(b"", final=True):
        yield rest
