"""Format the metrics that a job printed, as text and as CSV."""

import csv
import io

from toolkit.report.table import table
from toolkit.study.printed import PrintedFigures

_MOST_SHOWN = 40


def printed_text(result: PrintedFigures, width: int | None) -> str:
    """Return a table with one row for each output line that contains metrics. If the output has more than 40
    lines with metrics, the table shows only the last 40 lines.
    """
    columns = _columns(result)
    first = max(0, len(result.rows) - _MOST_SHOWN)
    rows = [
        (number, *(_cell(row.get(name)) for name in columns))
        for number, row in enumerate(result.rows[first:], first + 1)
    ]
    more = f"; the table leaves out the first {first} lines with metrics" if first else ""
    return f"{table(('line', *columns), rows, width)}\n\nfrom the output of {result.job}{more}"


def printed_csv(result: PrintedFigures) -> str:
    """Return CSV with a header and one row for each output line that contains metrics."""
    columns = _columns(result)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("line", *columns))
    for number, row in enumerate(result.rows, 1):
        values = (row.get(name) for name in columns)
        writer.writerow((number, *("" if value is None else value for value in values)))
    return text.getvalue()


def _columns(result: PrintedFigures) -> list[str]:
    return [*dict.fromkeys(name for row in result.rows for name in row)]


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
