"""Check all rows of a table in one test, and report each failing row by its name."""

import contextlib
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
"""Exceptions of a failed row; a skipped row counts as failed, too, because nothing checked it."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    values: dict[str, object]


@dataclass(frozen=True, slots=True)
class Table:
    check: Check
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        return f"{self.check.__module__}.{self.check.__qualname__}"

    @property
    def fixtures(self) -> frozenset[str]:
        """The names of the check's fixtures: its parameters that are not columns."""
        return frozenset(inspect.signature(self.check).parameters.keys() - self.rows[0].values.keys())

    def crossed(self, rows: Iterable[Row]) -> "Table":
        """Return a table with every combination of an old row and a new row."""
        both = [Row(f"{old.name}-{new.name}", old.values | new.values) for old in self.rows for new in rows]
        return Table(self.check, tuple(both))


@dataclass(slots=True)
class Walks:
    """Command-line options of the test run that apply to all tables."""

    only: str = ""
    """Text in the names of the rows to check; empty for all rows."""
    seed: int | None = None
    """Seed for a random order of the rows; without a seed, the order is unchanged."""


WALKS = Walks()


def every_row(
    columns: str | Sequence[str], values: Iterable[Any], ids: Ids = None
) -> Callable[[Check], Check]:
    """Decorate a check, so that one test calls it with all rows.

    The arguments are as in ``pytest.mark.parametrize``. The test fails once, with a table of all failing
    rows. Each row has its own function-scoped fixtures, as with ``pytest.mark.parametrize``. All rows
    share pytest's own fixtures such as ``capsys``, except ``tmp_path`` and ``monkeypatch``.
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
    """Call a check of one argument with every value, like ``every_row``; return the number of values."""
    __tracebackhide__ = True
    (column,) = inspect.signature(check).parameters
    return walk(Table(check, tuple(_rows([column], [(value,) for value in values], ids))), None)


def walk(table: Table, request: pytest.FixtureRequest | None) -> int:
    """Call the check with every row, and return the number of rows.

    ``request`` provides the fixtures; a check without fixtures needs no request.

    Raises:
        AssertionError: if rows failed; the message names each of them, and the cause is the first failure.
    """
    __tracebackhide__ = True
    if not table.rows:
        raise ValueError(f"the table of {table.name} has no rows")
    rows = [row for row in table.rows if WALKS.only in row.name]
    if WALKS.seed is not None:
        random.Random(WALKS.seed).shuffle(rows)
    faults = [(row, _fault(table, row, number, request)) for number, row in enumerate(rows)]
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
    chosen = ids(cell) if ids else None
    if chosen is None:
        chosen = getattr(cell, "__name__", None) or (cell.name if isinstance(cell, Path) else cell)
    text = chosen if isinstance(chosen, str) else repr(chosen)
    plain = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return plain if len(plain) <= 70 else f"{plain[:67]}..."


def _test(table: Table) -> Check:
    """Return the test that pytest collects; it requests fixtures only if the check has fixtures."""

    @functools.wraps(table.check)
    def test(request: pytest.FixtureRequest | None = None) -> None:
        __tracebackhide__ = True
        walk(table, request)

    parameter = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    vars(test).update(__signature__=inspect.Signature([parameter] if table.fixtures else []), table=table)
    return test


def _fault(
    table: Table, row: Row, number: int, request: pytest.FixtureRequest | None
) -> BaseException | None:
    with contextlib.ExitStack() as ends:
        try:
            fixtures = RowFixtures(request, number, row.values, ends) if request else {}
            table.check(**{name: fixtures[name] for name in table.fixtures}, **row.values)
        except FAULTS as error:
            return error
    return None


class RowFixtures(dict[str, Any]):
    """The fixtures of one row by name; a function-scoped fixture of the row is created when first used."""

    def __init__(
        self,
        request: pytest.FixtureRequest,
        number: int,
        values: dict[str, object],
        ends: contextlib.ExitStack,
    ) -> None:
        super().__init__(values, request=request)
        self._request, self._number, self._ends = request, number, ends

    def __missing__(self, name: str) -> object:
        self[name] = self._made(name)
        return self[name]

    def _made(self, name: str) -> object:
        if name == "monkeypatch":
            return self._ends.enter_context(pytest.MonkeyPatch.context())
        definition = self._request._fixturemanager.getfixturedefs(name, self._request.node)[-1]
        make = definition.func
        if definition.scope != "function" or make.__module__.startswith("_pytest") or definition.params:
            return self._shared(name)
        given = {argument: self[argument] for argument in definition.argnames}
        if inspect.isgeneratorfunction(make):
            return self._ends.enter_context(contextlib.contextmanager(make)(**given))
        return make(**given)

    def _shared(self, name: str) -> object:
        value = self._request.getfixturevalue(name)
        if name == "tmp_path":
            value = value / str(self._number)
            value.mkdir()
        if isinstance(value, pytest.CaptureFixture):
            value.readouterr()
        return value


def _report(table: Table, count: int, failed: list[tuple[Row, BaseException]]) -> str:
    width = max(len(row.name) for row, _ in failed)
    lines = [f"  {row.name:{width}}  {_line(table, error)}  {_first(error)}" for row, error in failed]
    return "\n".join([f"{len(failed)} of {count} rows of {table.check.__name__} failed:", *lines])


def _line(table: Table, error: BaseException) -> str:
    own = table.check.__code__.co_filename
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == own), "?")
    return f"{Path(own).name}:{line}"


def _first(error: BaseException) -> str:
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{kind}{next(iter(str(error).splitlines()), type(error).__name__)[:160]}"


def rows_of(test: Check) -> tuple[Row, ...]:
    table: Table = vars(test)["table"]
    return table.rows
