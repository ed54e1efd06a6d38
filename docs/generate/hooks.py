"""MkDocs calls these hooks while it builds the site: they add the pages that are made from the code."""

from collections.abc import Iterator, Sequence
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generate import matrix, outside, reference, released
from docs.generate.navigation import expanded

_TWICE = "rules.md"
"""The search leaves out this page, because it repeats the pages of the findings."""
_WIDE = "matrix.md"
"""The page with tables that need the whole width."""
_GUIDES = ("Start", "How-to")
_RANKS = {"guide": 3, "reference/findings/": 0.5, "source/": 0.1}
"""The weight of a page in the search: guides first, then other pages, findings and files last."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages made from the code and from linked files, and complete the navigation."""
    made = reference.pages() | released.pages()
    for file in [file for file in files if file.src_uri in made]:
        files.remove(file)  # the committed page belongs to the last release
    texts = made | {file.src_uri: file.content_string for file in files.documentation_pages()}
    shown = {path for uri, text in texts.items() for path in outside.linked(text, uri)}
    made |= {outside.place(path): outside.page_of(path) for path in sorted(shown)}
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    config.nav = expanded(config.nav or [], [file.src_uri for file in files.documentation_pages()])
    return files


def on_page_content(html: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Colour the tables of the recorded launches."""
    return matrix.coloured(html) if page.file.src_uri == _WIDE else html


def on_page_markdown(markdown: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Replace each link to a file of the repository by a link to the file's page in the site. Set the weight
    of this page in the search."""
    uri = page.file.src_uri
    if uri == _WIDE:
        page.meta["hide"] = ["toc"]
    if uri == _TWICE:
        page.meta["search"] = {"exclude": True}
    elif (rank := _rank(uri, config)) is not None:
        page.meta["search"] = {"boost": rank}
    return outside.relinked(markdown, uri)


def _rank(uri: str, config: MkDocsConfig) -> float | None:
    if uri in guides(config.nav or []):
        return _RANKS["guide"]
    return next((rank for place, rank in _RANKS.items() if uri.startswith(place)), None)


def guides(nav: Sequence[Any]) -> set[str]:
    """Return the pages below the tabs ``Start`` and ``How-to`` of the navigation."""
    tabs = [
        below for entry in nav if isinstance(entry, dict) for name, below in entry.items() if name in _GUIDES
    ]
    return set(_pages(tabs))


def _pages(entry: Any) -> Iterator[str]:  # noqa: ANN401 - a text, a list, or the table of a section
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages(below)
