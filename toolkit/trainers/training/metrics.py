"""Write ``metrics.jsonl``: a header, an object for each epoch, a result; each line complete as soon as it is
known.

A resumed training writes the lines of its checkpoint, and a line that says so.

``docs/metrics.md`` describes the fields.
"""

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from toolkit.trainers.start_marks import is_complete
from toolkit.trainers.training.scalars import Scalars
from toolkit.trainers.trouble import Trouble

SCHEMA = "toolkit.metrics/1"
FILE = "metrics.jsonl"

Value = str | int | float | Mapping[str, str] | None
Record = Mapping[str, Value]


class Metrics:
    """The file of one run; ``None`` for a rank that writes nothing.

    The header of the run replaces an earlier run's file: a run that stops before that destroys nothing. If
    anything cannot be written, a :class:`Trouble` names the file.
    """

    def __init__(self, folder: Path | None, scalars: Scalars | None = None) -> None:
        self._path, self._scalars = folder / FILE if folder else None, scalars
        self._file: IO[str] | None = None
        self._starting = True
        self.records: list[Record] = []
        """All lines so far."""

    def header(self, **values: Value) -> None:
        self._begin([{"record": "header", "schema": SCHEMA, **values}])

    def resumed(self, before: Sequence[Record], **values: Value) -> None:
        """Replace the file by the earlier lines, and note that the training resumed."""
        self._begin([*before, {"record": "resumed", **values}])

    def started(self, marks: Mapping[str, float]) -> None:
        """Write once in a run when the parts of its start ended; ``marks`` may not be complete yet."""
        if self._starting and is_complete(marks):
            self._starting = False
            self._write({"record": "start", **marks})

    def epoch(self, **values: Value) -> None:
        self._write({"record": "epoch", **known(values)})

    def result(self, **values: Value) -> None:
        self._write({"record": "result", **known(values)})

    def _begin(self, records: Sequence[Record]) -> None:
        if self._path is None:
            return
        beside = self._path.with_name(f".{FILE}.{os.getpid()}.part")
        with writing(self._path):
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = beside.open("w", encoding="utf-8")
                if self._scalars:
                    self._scalars.begin()
                for record in records:
                    self._write(record)
                beside.replace(self._path)
            finally:
                beside.unlink(missing_ok=True)

    def _write(self, values: Record) -> None:
        if self._file and self._path:
            self.records.append(values)
            # JSON has no "not a number"; known() writes such values as null.
            line = json.dumps(values, allow_nan=False) + "\n"
            with writing(self._path):
                self._file.write(line)
                # Another program may read along, and a job may be stopped between two epochs.
                self._file.flush()
            if self._scalars:
                self._scalars.write(values)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            # A failed write fails again, and has been reported.
            with contextlib.suppress(OSError):
                self._file.close()


def known(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return measured values, with ``None`` for infinite values and NaN.

    A test loss can overflow: with float16, moving averages that lag behind the weights let activations
    overflow.
    """
    return {
        name: None if isinstance(one, float) and not math.isfinite(one) else one
        for name, one in values.items()
    }


def is_finished(folder: Path) -> bool:
    """Return whether a folder holds the metrics of a finished training."""
    try:
        lines = (folder / FILE).read_bytes().splitlines()
        return bool(lines) and json.loads(lines[-1]).get("record") == "result"
    except (OSError, ValueError, AttributeError):
        return False


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file by a function of its name; the name always refers to the old or the complete new file.

    Raises:
        Trouble: if the file cannot be written.
    """
    # Keras chooses the format by the ending, so the temporary name keeps it.
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    with writing(path):
        try:
            write(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a disk error into one line that names the file."""
    try:
        yield
    except OSError as error:
        raise Trouble(f"{path}: cannot be written: {error.strerror or error}", code=1) from error
