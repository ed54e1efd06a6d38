"""The navigation beside every page: an entry of ``mkdocs.yml`` that names a folder is replaced by its
pages.
"""

from collections.abc import Iterator, Sequence
from typing import Any

_FIRST = ("index.md", "README.md")


def expanded(entries: Sequence[Any], pages: Sequence[str]) -> list[Any]:
    """Return the entries with folders replaced by their pages.

    The function leaves out missing pages, such as a page that a benchmark has not written yet, and empty
    sections. If an entry has a wrong name, MkDocs still reports the page that no entry names.
    """
    return [made for entry in entries for made in _expanded(entry, pages)]


def _expanded(entry: Any, pages: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401 - a text, or a section's table
    if isinstance(entry, str):
        yield from _inside(entry, pages) if entry.endswith("/") else {entry} & set(pages)
        return
    ((title, below),) = entry.items()
    inner = expanded([below] if isinstance(below, str) else below, pages)
    if inner:
        yield {title: below if inner == [below] else inner}


def _inside(folder: str, pages: Sequence[str]) -> list[str]:
    found = [page for page in pages if page.rpartition("/")[0] == folder.removesuffix("/")]
    return sorted(found, key=lambda page: (page.rpartition("/")[2] not in _FIRST, page))
