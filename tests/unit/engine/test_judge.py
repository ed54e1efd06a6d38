"""How what the rules say becomes one outcome, and what comes by chance beside it."""

from tests.unit.engine.whole import case
from toolkit.engine.judge import judge
from toolkit.engine.rule import Hit, Lacks, Rule


def saying(name: str, answer: Hit | Lacks) -> Rule:
    return Rule(name, name.title(), "error", "mend it", "a test", lambda _: answer)


ENDS = saying("ends", Hit(("seen",), "hang", "it waits", by_chance=("init-failure",)))
SHAKY = saying("shaky", Hit(("seen",), by_chance=("crash",)))
LACKING = saying("lacking", Lacks(("image.pmix",)))


def test_a_failure_names_what_else_may_come_of_it():
    said, _ = judge(case(), (ENDS,))
    assert (said.outcome, said.by_chance) == ("hang", ("init-failure",))
    assert said.why == "it waits; by chance it ends in init-failure instead"
    assert [said.foretells(outcome) for outcome in ("hang", "init-failure", "ok")] == [True, True, False]


def test_what_works_by_and_large_names_what_may_go_wrong():
    said, _ = judge(case(), (SHAKY, SHAKY))
    assert (said.outcome, said.by_chance) == ("ok", ("crash",))
    assert said.why.endswith("; by chance it ends in crash instead")


def test_a_failure_takes_no_chances_from_rules_that_change_nothing():
    said, _ = judge(case(), (SHAKY, ENDS))
    assert said.by_chance == ("init-failure",)


def test_nothing_comes_by_chance_where_nobody_knows_what_comes():
    said, _ = judge(case(), (LACKING, ENDS))
    assert (said.outcome, said.by_chance) == ("unknown", ())
    assert said.why == said.because
