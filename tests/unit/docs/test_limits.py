"""Test that pages and paragraphs are not too long."""

import re

from docs.generate.outside import ROOT
from tests.unit.tables import every_row

DOCS = ROOT / "docs"
GENERATED = {"rules.md", "matrix.md", "horovod.md"}
"""Pages that ``docs.generate.released`` writes from the code."""
PAGES = sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))
MOST_WORDS, MOST_IN_A_PARAGRAPH, MOST_LINES = 2000, 90, 120
_CODE = re.compile(r"^(```|~~~)[\s\S]*?^\1\s*$|^(?: {4,}|\t).*$", re.MULTILINE)
_ITEM = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )")


def words(text):
    return len(_CODE.sub("", text).split())


def paragraphs(text):
    parts = (part.strip() for part in _ITEM.split(_CODE.sub("", text)))
    return [part for part in parts if part and part[0] not in "|#<"]


@every_row("page", sorted(set(PAGES) - GENERATED))
def test_a_page_and_its_paragraphs_are_short(page):
    text = (DOCS / page).read_text()
    assert words(text) <= MOST_WORDS
    long = [part for part in paragraphs(text) if len(part.split()) > MOST_IN_A_PARAGRAPH]
    assert not long, long


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert all(len(part.split()) <= MOST_IN_A_PARAGRAPH for part in paragraphs(text))


def test_words_in_blocks_do_not_count():
    blocks = "One two.\n\n    toolkit launch\n\n```sh\nlong command\n```\n\n"
    text = blocks + "- three\n- four\n  five\n\n| six | seven |\n"
    assert words(text) == 2 + 2 + 3 + 5
    assert paragraphs(text) == ["One two.", "- three", "- four\n  five"]
