"""Write ``metrics.jsonl``: a header line, a start line, a line after each epoch, and a result line.

A resumed training first writes the metrics lines that its checkpoint contains, and then a line ``resumed``.

``docs/metrics.md`` describes the fields of ``metrics.jsonl``.
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
    """Writes the metrics of one run to ``folder``. On ranks other than 0, ``folder`` is ``None``, and the
    class writes nothing.

    When a run writes its first line, the new file replaces the metrics file of an earlier run. A run that
    fails before its first line leaves the metrics file of an earlier run unchanged. If a write fails, the
    class raises a :class:`Trouble` that names the metrics file.
    """

    def __init__(self, folder: Path | None, scalars: Scalars | None = None) -> None:
        self._path, self._scalars = folder / FILE if folder else None, scalars
        self._file: IO[str] | None = None
        self._starting = True
        self.records: list[Record] = []
        """All metrics lines that this run has written so far, including lines from a loaded checkpoint."""

    def header(self, **values: Value) -> None:
        self._begin([{"record": "header", "schema": SCHEMA, **values}])

    def resumed(self, records: Sequence[Record], **values: Value) -> None:
        """Replace the content of the metrics file with ``records`` (the lines in the checkpoint) and a line
        ``resumed`` with ``values``.
        """
        self._begin([*records, {"record": "resumed", **values}])

    def started(self, marks: Mapping[str, float]) -> None:
        """Write the metrics line ``start`` once, after the rank has trained its first batch. ``marks``
        contains the finish time of each part of the rank's start, such as the imports, and the number of the
        rank's read system calls.
        """
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
            # JSON cannot represent NaN. For measured values, known() has already replaced NaN by None.
            line = json.dumps(values, allow_nan=False) + "\n"
            with writing(self._path):
                self._file.write(line)
                # Write at once: other programs read the file, and Slurm may kill the job at any time.
                self._file.flush()
            if self._scalars:
                self._scalars.write(values)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            # If a write failed, close() fails again. Ignore this error, because the write raised Trouble.
            with contextlib.suppress(OSError):
                self._file.close()


def known(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values of a metrics line, with ``None`` instead of infinite values and NaN.

    A test loss can overflow and become infinite. For example, if the moving averages of a batch normalisation
    lag behind the weights, activations become large, and a float16 test loss can overflow.
    """
    return {
        name: None if isinstance(one, float) and not math.isfinite(one) else one
        for name, one in values.items()
    }


def is_finished(folder: Path) -> bool:
    """Return whether the training in ``folder`` is complete: the last line of its metrics file is a result
    line.
    """
    try:
        lines = (folder / FILE).read_bytes().splitlines()
        return bool(lines) and json.loads(lines[-1]).get("record") == "result"
    except (OSError, ValueError, AttributeError):
        return False


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` with a temporary path, and then rename the written file to ``path``, so that ``path`` is
    never a partly written file.

    Raises:
        Trouble: if the file cannot be written.
    """
    # Keep the suffix in the temporary name, because Keras derives the file format from the suffix.
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    with writing(path):
        try:
            write(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise ``Trouble`` with the file's name if the ``with`` block raises an ``OSError``."""
    try:
        yield
    except OSError as error:
        raise Trouble(f"{path}: cannot be written: {error.strerror or error}", code=1) from error
