"""Format plain tables that fit a terminal and a log file."""

from collections.abc import Iterable, Iterator, Sequence

from toolkit.report.lines import ROOM, wrap_text
from toolkit.report.plain import one_line

_BELOW = 4


def table(titles: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None) -> str:
    """Return a table with two spaces between its columns and with numbers aligned on the right.

    If the table is wider than ``width`` characters, toolkit wraps the last column. If the table is still too
    wide, toolkit places the last columns below the first columns.
    """
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    numeric = [
        bool(cells) and all(row[i].replace(".", "").isdigit() for row in cells) for i in range(len(titles))
    ]
    lines = [_line(row, widths, numeric) for row in (titles, ["-" * w for w in widths], *cells)]
    if width is None or max(map(len, lines)) <= width:
        return "\n".join(lines)
    return "\n".join(_within(titles, cells, widths, numeric, width))


def _within(
    titles: Sequence[str],
    cells: Sequence[Sequence[str]],
    widths: Sequence[int],
    right: Sequence[bool],
    width: int,
) -> Iterator[str]:
    """Yield the lines of a table that is too wide, with its last columns wrapped to ``width`` characters."""
    beside = _columns_that_fit(widths, width)
    start = sum(widths[:beside]) + 2 * beside
    column = start if width - start >= ROOM and beside == len(widths) - 1 else _BELOW
    ruler = ["-" * w for w in widths[:beside]]
    for row in (titles, ruler, *cells):
        first = _line(row[:beside], widths[:beside], right[:beside])
        if row is ruler:
            yield f"{first}  {'-' * min(widths[-1], width - start)}" if column == start else first
            continue
        below = wrap_text("  ".join(cell for cell in row[beside:] if cell), column, width)
        if column == start and below:
            yield f"{first:{start}}{below.pop(0).strip()}".rstrip()
        else:
            yield first
        yield from below


def _columns_that_fit(widths: Sequence[int], width: int) -> int:
    """Return how many columns from the left fit in ``width`` characters. The result is at least 1."""
    fitting = [n for n in range(1, len(widths)) if sum(widths[:n]) + 2 * (n - 1) <= width]
    return max(fitting, default=1)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
    return "  ".join(padded).rstrip()
