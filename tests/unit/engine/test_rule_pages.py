"""Test the pages of the rules: their texts and their examples."""

from tests.unit.tables import every_row
from toolkit import knowledge
from toolkit.engine.registry import RULES
from toolkit.engine.rule import Rule
from toolkit.knowledge.examples import example
from toolkit.report.meanings import meaning
from toolkit.report.rules import rule_page


def test_the_shipped_examples_cover_the_rules():
    """Rules that are newer than the last release have no example yet."""
    assert sum(example(rule.id) is not None for rule in RULES) > 0.9 * len(RULES)


@every_row("rule", RULES, ids=lambda r: r.id)
def test_a_page_tells_what_a_person_needs(rule: Rule):
    page = rule_page(rule)
    flat = " ".join(page.split())
    shown = example(rule.id)
    evidence = shown.evidence if shown else ()
    for text in (rule.id, rule.severity, rule.title, rule.fix, rule.source, *rule.facts, *evidence):
        assert " ".join(text.split()) in flat.replace("· ", ""), text
    heads = [line for line in page.splitlines() if line and not line.startswith(" ")]
    wanted = [
        "What happens",
        "Effect on a launch",
        "Facts that the rule uses",
        "For example",
        "Fix",
    ]
    if not shown:
        wanted.remove("For example")
    assert [head for head in heads if head in wanted] == wanted
    assert max(map(len, page.splitlines())) <= 80


@every_row("fact", sorted({fact for rule in RULES for fact in rule.facts}))
def test_every_fact_that_a_rule_asks_for_is_explained(fact: str):
    assert meaning(fact).endswith((".", "``", ")"))


def test_signatures_name_rules_that_there_are_and_their_pages_show_them():
    named = {s.finding for s in knowledge.signatures() if s.finding}
    assert named <= {rule.id for rule in RULES}, sorted(named - {rule.id for rule in RULES})
    shown = rule_page(next(rule for rule in RULES if rule.id == "slurm-lacks-pmix"))
    assert "In the output of a job" in shown
