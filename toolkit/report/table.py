"""Plain tables that fit a terminal and a log file alike."""

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Align columns with two spaces between them; numbers stand at the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    numeric = [
        bool(cells) and all(row[i].replace(".", "").isdigit() for row in cells) for i in range(len(titles))
    ]
    lines = [_line(titles, widths, numeric), _line(["-" * w for w in widths], widths, numeric)]
    lines += [_line(row, widths, numeric) for row in cells]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
    return "  ".join(padded).rstrip()
