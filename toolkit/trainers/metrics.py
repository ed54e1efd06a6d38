"""Write ``metrics.jsonl``: a header, an object an epoch, a result; each line whole as soon as it is known.

``docs/metrics.md`` is the description of the fields.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from toolkit.trainers.trouble import Trouble

SCHEMA = "toolkit.metrics/1"
FILE = "metrics.jsonl"

Value = str | int | float | Mapping[str, str]


class Metrics:
    """The file of one run; ``None`` for a rank that writes nothing.

    It takes the place of an earlier run's with its header: a run that does not get that far destroys nothing.
    All that cannot be written is a :class:`Trouble` that names the file.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / FILE if folder else None
        self._file: IO[str] | None = None

    def header(self, **values: Value) -> None:
        if self._path is None:
            return
        beside = self._path.with_name(f".{FILE}.{os.getpid()}.part")
        with writing(self._path):
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = beside.open("w", encoding="utf-8")
                self._write({"record": "header", "schema": SCHEMA, **values})
                beside.replace(self._path)
            finally:
                beside.unlink(missing_ok=True)

    def epoch(self, **values: Value) -> None:
        self._write({"record": "epoch", **values})

    def result(self, **values: Value) -> None:
        self._write({"record": "result", **values})

    def _write(self, values: Mapping[str, Value]) -> None:
        if self._file and self._path:
            # JSON has no word for "not a number"; the loop ends a run that comes to that.
            line = json.dumps(values, allow_nan=False) + "\n"
            with writing(self._path):
                self._file.write(line)
                # Someone may be reading along, and a job may be ended between two epochs.
                self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            # What could not be written before cannot be now, and has been told.
            with contextlib.suppress(OSError):
                self._file.close()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a fault of the disk into one line that names the file."""
    try:
        yield
    except OSError as error:
        raise Trouble(f"{path}: cannot be written: {error.strerror or error}", code=1) from error
