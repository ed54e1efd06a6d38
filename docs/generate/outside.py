"""Make a page of the site for each file of the repository that a page in ``docs`` links to."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from docs.generate.markdown import fence

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"(?<=\]\()(?P<path>(?:\.\./)+[\w./+-]+)(?=[)#])")
_FOLDER = "source"
_README = "README.md"
"""In the site, the front page replaces this file."""
_LANGUAGES = {
    ".toml": "toml",
    ".py": "python",
    ".sh": "sh",
    ".yaml": "yaml",
    ".md": "markdown",
    ".json": "json",
}


def linked(markdown: str, page: str) -> Iterator[str]:
    """Yield the files outside ``docs`` that a page of ``docs`` links to."""
    for found in _LINK.finditer(markdown):
        path = _repository_path(found["path"], page)
        if not path.startswith("docs/") and path != _README:
            yield path


def relinked(markdown: str, page: str) -> str:
    """Return the text of a page, with links to files outside ``docs`` replaced by links to their pages."""

    def leads(found: re.Match[str]) -> str:
        path = _repository_path(found["path"], page)
        if path.startswith("docs/"):
            return found["path"]
        return posixpath.relpath(place(path), posixpath.dirname(page) or ".")

    return _LINK.sub(leads, markdown)


def place(path: str) -> str:
    """Return the path in the site of the page that shows a file of the repository."""
    return "index.md" if path == _README else f"{_FOLDER}/{path}.md"


def page_of(path: str) -> str:
    """Return the page that shows a file.

    Raises:
        FileNotFoundError: if the file does not exist, because a link names a wrong path.
    """
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"# {path}\n\n{fence((ROOT / path).read_text(), language)}\n"


def _repository_path(link: str, page: str) -> str:
    return posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
