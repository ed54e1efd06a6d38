"""Find the examples in README and guides (commands that begin with ``toolkit``), and how tests run them."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("examples.toml")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "howto").glob("*.md")))

_EXAMPLE = re.compile(r"^ {4}(?P<text>toolkit (?:.*\\\n)*.+)$", re.MULTILINE)
_SHORTENED = "…"
_PLACES = ("--host", "--cluster", "--facts", "--local")
_AT_A_PLACE = {"launch", "doctor", "probe", "init", "scale"}


@dataclass(frozen=True)
class Row:
    """A row of ``examples.toml``: how to run the examples that begin with the words ``starts``."""

    how: str
    why: str
    page: str = ""
    starts: str = ""
    more: str = ""

    def takes(self, page: str, words: str) -> bool:
        return self.page in {"", page} and words.startswith(self.starts)


@dataclass(frozen=True)
class PageExample:
    """A command on a page, without its comment."""

    page: Path
    text: str

    @property
    def words(self) -> str:
        return self.text.removeprefix("toolkit ")

    @property
    def row(self) -> Row:
        return next((row for row in rows() if row.takes(self.page.name, self.words)), Row("run", ""))

    def typed(self, cluster: str) -> str:
        """Return the command line for a reader whose virtual cluster is ``cluster``."""
        head, dashes, rest = self.text.partition(" -- ")
        head = re.sub(r"--host \S+", f"--cluster {cluster}", head)
        verb = self.words.split()[0]
        if verb in _AT_A_PLACE and not any(f"{place} " in f"{head} " for place in _PLACES):
            head = head.replace(f"toolkit {verb}", f"toolkit {verb} --cluster {cluster}", 1)
        more = " --dry-run" if self.row.how == "dry-run" else f" {self.row.more}".rstrip()
        return f"{head}{more}{dashes}{rest}"


def rows() -> tuple[Row, ...]:
    """Return the rows of the table; the first row that matches an example counts."""
    return tuple(Row(**row) for row in tomllib.loads(TABLE.read_text())["example"])


def examples(page: Path) -> list[PageExample]:
    """Return the examples of a page in order, except examples that the page abbreviates."""
    found = [match["text"].replace("\\\n", " ") for match in _EXAMPLE.finditer(page.read_text())]
    bare = [re.sub(r"\s+# .*$", "", re.sub(r" {2,}", " ", text)) for text in found]
    return [PageExample(page, text.strip()) for text in bare if _SHORTENED not in text]
