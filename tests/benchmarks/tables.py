"""Write Markdown tables."""

from collections.abc import Iterable


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table with one line per row; the second row must be the separator."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
