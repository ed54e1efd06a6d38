"""Check the built site: every link and anchor has a target, and no page loads files from other servers.

.venv/bin/python -m docs.generate.links build/site
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = frozenset({"script", "link", "img", "iframe", "source", "object"})
"""HTML tags whose target a browser fetches without a click."""


class Page(HTMLParser):
    """The links of a page, each with its tag, and the targets on the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links += [(tag, given[name]) for name in ("href", "src", "data") if name in given]


def complaints(site: Path) -> Iterator[str]:
    """Yield a line for each link without a target, and for each missing file or anchor."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for tag, link in dict.fromkeys(page.links):
            if wrong := _wrong(site, path, tag, link, pages):
                yield f"{path.relative_to(site)}: {link}: {wrong}"


def _wrong(site: Path, path: Path, tag: str, link: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return "is loaded from another server" if tag in _LOADS and parts.scheme != "data" else ""
    words = unquote(parts.path)
    target = (site / words.lstrip("/") if words.startswith("/") else path.parent / words).resolve()
    if not words:
        target = path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "there is no such page or file"
    known = target not in pages or unquote(parts.fragment) in pages[target].anchors
    return "" if known else "there is no such anchor"


def main(folder: str) -> int:
    """Print the faults of a site and return the exit code."""
    site = Path(folder).resolve()
    found = list(complaints(site))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    pages = len(list(site.rglob("*.html")))
    sys.stdout.write(f"{site.name}: {pages} pages, {len(found)} wrong links\n")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
