"""Test the pages of findings: one page for each finding, with its texts unchanged."""

import re
from functools import cache

import yaml

from docs.generate.findings import pages
from docs.generate.markdown import cell, plain
from tests.unit.tables import every_row
from toolkit import knowledge
from toolkit.engine.registry import RULES


@cache
def made_pages():
    return pages()


def index():
    return made_pages()["reference/findings/index.md"]


def page(name):
    return made_pages()[f"reference/findings/{name}.md"]


@every_row("rule", RULES, ids=lambda r: r.id)
def test_a_rule_has_a_page_and_a_line_in_the_index(rule):
    text = page(rule.id)
    for told in (rule.title, rule.fix[1:], rule.source[1:], *(f"`{fact}`" for fact in rule.facts)):
        assert plain(told) in text
    assert not re.search(r"\n## (?:Fix|Source)\n\n[a-z]+ ", text)
    assert f"\n# {plain(rule.title)} <code class=finding-id>{rule.id}</code>\n" in text
    assert yaml.safe_load(text.split("---")[1]) == {"title": rule.title.replace("`", "")}
    assert f"| [{cell(rule.title)}]({rule.id}.md)<br>`{rule.id}` | {rule.severity} |" in index()


@every_row("signature", knowledge.signatures(), ids=lambda s: s.id)
def test_a_line_of_output_is_on_the_page_of_what_it_tells(signature):
    text = page(signature.finding or signature.id)
    assert " ".join(signature.sample.split()) in text


def test_ranks_that_are_alone_have_a_page():
    assert "0: rank 0 of 1" in page("ranks-alone")
    assert "(ranks-alone.md)<br>`ranks-alone` | error |" in index()


def test_there_is_no_page_that_the_index_does_not_name():
    assert all(
        f"]({path.rpartition('/')[2]})" in index() for path in made_pages() if not path.endswith("index.md")
    )


def test_what_looks_like_a_tag_is_shown_and_code_stays_code():
    assert plain("a <b> and ``<c>``") == "a &lt;b> and `<c>`"
    assert cell("one\n  two | three") == "one two \\| three"
