"""Write ``metrics.jsonl``: a header, an object an epoch, a result; each line whole as soon as it is known.

``docs/metrics.md`` is the description of the fields.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

SCHEMA = "toolkit.metrics/1"
FILE = "metrics.jsonl"

Value = str | int | float | Mapping[str, str]


class Metrics:
    """The file of one run, which replaces an earlier one's; ``None`` for a rank that writes nothing."""

    def __init__(self, folder: Path | None) -> None:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / FILE).open("w", encoding="utf-8") if folder else None

    def header(self, **values: Value) -> None:
        self._write({"record": "header", "schema": SCHEMA, **values})

    def epoch(self, **values: Value) -> None:
        self._write({"record": "epoch", **values})

    def result(self, **values: Value) -> None:
        self._write({"record": "result", **values})

    def _write(self, values: Mapping[str, Value]) -> None:
        if self._file:
            # JSON has no word for "not a number"; the loop ends a run that comes to that.
            self._file.write(json.dumps(values, allow_nan=False) + "\n")
            # Someone may be reading along, and a job may be ended between two epochs.
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()
