"""Write Markdown: escaped text, cells, blocks of code and tables."""

from collections.abc import Iterable, Sequence


def plain(text: str) -> str:
    """Return text escaped for Markdown, so that text which looks like a tag is shown."""
    parts = text.replace("``", "`").split("`")
    parts[::2] = [
        words.replace("<", "&lt;") for words in parts[::2]
    ]  # text between backticks stays unchanged
    return "`".join(parts)


def cell(text: str) -> str:
    """Return text for a cell of a table: on one line and escaped."""
    return plain(" ".join(text.split())).replace("|", "\\|")


def fence(text: str, language: str) -> str:
    """Return ``text`` as a block of code in ``language``, for example ``sh`` or ``toml``."""
    return f"````{language}\n{text.rstrip()}\n````"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
