"""Print the newest releases in the index beside the known releases; exit with status 1 if a row is too old.

python -m tests.fresh.run
"""

import datetime as dt
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.fresh.index import files, index
from tests.fresh.rows import Row, looked, of_package, of_table, released

_HEAD = ("what", "rows", "index", "looked at", "limit", "state")
_STATES = {"current": "current", "newer": "newer release", "old": "OLD"}


def table(rows: Sequence[Row]) -> str:
    cells = [_HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
    notes = [f"{row.name} stays: {row.why}" for row in rows if row.why]
    return "\n".join((*(line.rstrip() for line in lines), *notes)) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    return (row.name, row.known, row.newest, f"{row.age} days ago", f"{row.days} days", _STATES[row.state])


def main() -> int:
    """Query the index for all packages, and print the table; return the exit status."""
    today, entries = dt.datetime.now(dt.UTC).date(), looked()
    sys.stderr.write(f"Asking {index()} for {len(entries.package)} projects\n")
    with ThreadPoolExecutor(8) as pool:
        newest = pool.map(lambda package: released(files(package.project)), entries.package)
        rows = [of_package(p, found, today) for p, found in zip(entries.package, newest, strict=True)]
    rows += [of_table(one, today) for one in entries.table]
    sys.stdout.write(table(rows))
    old = [row.name for row in rows if row.state == "old"]
    if old:
        sys.stderr.write(f"Older than their limit: {', '.join(old)}\n")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
