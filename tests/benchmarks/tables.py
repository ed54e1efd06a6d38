"""Tables as Markdown has them."""

from collections.abc import Iterable


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return lines of cells; the second row separates the head from the rest."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
