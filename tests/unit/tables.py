"""Check every row of a table in one test, and report each row that fails by its name."""

import functools
import inspect
import random
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Check = Callable[..., None]
Ids = Callable[[Any], object] | Iterable[str] | None

FAULTS = (Exception, SystemExit, pytest.fail.Exception, pytest.skip.Exception)
"""Exceptions that count as a failed row. A skipped row fails too, because nothing checked it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: its name and the arguments that it gives to the check."""

    name: str
    values: dict[str, object]


@dataclass(frozen=True, slots=True)
class Table:
    """A test function and all rows that it is called with."""

    check: Check
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        return f"{self.check.__module__}.{self.check.__qualname__}"

    def crossed(self, rows: Iterable[Row]) -> "Table":
        """Return the table of every old row combined with every new row."""
        both = [Row(f"{old.name}-{new.name}", old.values | new.values) for old in self.rows for new in rows]
        return Table(self.check, tuple(both))


@dataclass(slots=True)
class Walks:
    """Options of the test run that apply to all tables."""

    only: str = ""
    """Text in the name of the rows to check."""
    seed: int | None = None
    """Seed of the order of the rows; they keep their order without one."""


WALKS = Walks()


def every_row(
    columns: str | Sequence[str], values: Iterable[Any], ids: Ids = None
) -> Callable[[Check], Check]:
    """Make one test of a function that takes a row: it takes the arguments of ``pytest.mark.parametrize``.

    The test calls the function with every row and fails once, with a table of all rows that failed.
    Each row has its own ``tmp_path`` and ``monkeypatch``; the rows share all other fixtures.
    """
    names = [name.strip() for name in columns.split(",")] if isinstance(columns, str) else list(columns)
    single = isinstance(columns, str) and len(names) == 1
    rows = list(_rows(names, [(value,) if single else value for value in values], ids))
    if not rows:
        raise ValueError(f"the table of {', '.join(names)} has no rows")

    def decorate(check: Check) -> Check:
        inner: Table | None = getattr(check, "table", None)
        table = inner.crossed(rows) if inner else Table(check, tuple(rows))
        return _test(table)

    return decorate


def check_all(check: Check, values: Iterable[Any], ids: Ids = None) -> int:
    """Call a check of one argument with every value, as the test of ``every_row`` does; return the count."""
    __tracebackhide__ = True
    (column,) = inspect.signature(check).parameters
    return walk(Table(check, tuple(_rows([column], [(value,) for value in values], ids))), {})


def walk(table: Table, fixtures: dict[str, object]) -> int:
    """Call the check with every row and return the number of rows.

    Raise one AssertionError that names every row that failed; its cause is the first failure.
    """
    __tracebackhide__ = True
    if not table.rows:
        raise ValueError(f"the table of {table.name} has no rows")
    rows = [row for row in table.rows if WALKS.only in row.name]
    if WALKS.seed is not None:
        random.Random(WALKS.seed).shuffle(rows)
    faults = [(row, _fault(table, row, number, fixtures)) for number, row in enumerate(rows)]
    failed = [(row, error) for row, error in faults if error]
    if failed:
        raise AssertionError(_report(table, len(rows), failed)) from failed[0][1]
    if not rows:
        pytest.skip(f"no row has {WALKS.only!r} in its name")
    return len(rows)


def _rows(names: list[str], values: list[Sequence[object]], ids: Ids) -> Iterator[Row]:
    naming = ids if ids is None or callable(ids) else None
    given = [None] * len(values) if ids is None or callable(ids) else list(ids)
    used: dict[str, int] = {}
    for number, (cells, chosen) in enumerate(zip(values, given, strict=True)):
        if len(cells) != len(names):
            raise ValueError(f"row {number} has {len(cells)} values for {', '.join(names)}: {cells!r}")
        name = chosen or "-".join(_name(cell, naming) for cell in cells)
        used[name] = used.get(name, 0) + 1
        yield Row(name if used[name] == 1 else f"{name}#{used[name]}", dict(zip(names, cells, strict=True)))


def _name(cell: object, ids: Callable[[Any], object] | None) -> str:
    """Return a name of a value for the table of failures: short, in one line."""
    chosen = ids(cell) if ids else None
    if chosen is None:
        chosen = getattr(cell, "__name__", None) or (cell.name if isinstance(cell, Path) else cell)
    text = chosen if isinstance(chosen, str) else repr(chosen)
    plain = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return plain if len(plain) <= 70 else f"{plain[:67]}..."


def _test(table: Table) -> Check:
    """Return the test that pytest collects: it asks for the fixtures that are no columns of the table."""
    columns = table.rows[0].values.keys()
    wanted = [p for p in inspect.signature(table.check).parameters.values() if p.name not in columns]

    @functools.wraps(table.check)
    def test(**fixtures: object) -> None:
        __tracebackhide__ = True
        walk(table, fixtures)

    vars(test).update(__signature__=inspect.Signature(wanted), table=table)
    return test


def _fault(table: Table, row: Row, number: int, fixtures: dict[str, object]) -> BaseException | None:
    """Call the check with one row, and return what it raised."""
    own = dict(fixtures)
    if isinstance(folder := fixtures.get("tmp_path"), Path):
        own["tmp_path"] = folder / str(number)
        (folder / str(number)).mkdir()
    if isinstance(captured := fixtures.get("capsys"), pytest.CaptureFixture):
        captured.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in fixtures:
            own["monkeypatch"] = patch
        try:
            table.check(**own, **row.values)
        except FAULTS as error:
            return error
    return None


def _report(table: Table, count: int, failed: list[tuple[Row, BaseException]]) -> str:
    width = max(len(row.name) for row, _ in failed)
    lines = [f"  {row.name:{width}}  {_line(table, error)}  {_first(error)}" for row, error in failed]
    return "\n".join([f"{len(failed)} of {count} rows of {table.check.__name__} failed:", *lines])


def _line(table: Table, error: BaseException) -> str:
    """Return the file and line at which the check failed."""
    own = table.check.__code__.co_filename
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == own), "?")
    return f"{Path(own).name}:{line}"


def _first(error: BaseException) -> str:
    """Return the kind and the first line of an error."""
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{kind}{next(iter(str(error).splitlines()), type(error).__name__)[:160]}"


def rows_of(test: Check) -> tuple[Row, ...]:
    """Return the rows of a test that ``every_row`` made."""
    table: Table = vars(test)["table"]
    return table.rows
