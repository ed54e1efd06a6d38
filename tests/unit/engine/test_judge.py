"""Test how the findings of rules become one outcome, and which other outcomes happen by chance."""

import msgspec
import pytest

from tests.unit.engine.whole import HOST, IMAGE, MPI, absent, case, image, unread
from tests.unit.tables import every_row
from toolkit.engine.case import Case
from toolkit.engine.guarded import Moot, Undecided, attempt
from toolkit.engine.judge import judge
from toolkit.engine.rule import Hit, Rule


def saying(name: str, answer: Hit) -> Rule:
    return Rule(name, name.title(), "error", "mend it", "a test", lambda _: answer)


ENDS = saying("ends", Hit(("seen",), "hang", "it waits", by_chance=("init-failure",)))
SHAKY = saying("shaky", Hit(("seen",), by_chance=("crash",)))
LACKING = Rule("lacking", "Lacking", "error", "mend it", "a test", lambda of: of.ask("image.pmix"))


def test_a_failure_names_what_else_may_come_of_it():
    said, _ = judge(case(), (ENDS,))
    assert (said.outcome, said.by_chance) == ("hang", ("init-failure",))
    assert said.why == "it waits; some launches end in init-failure instead"
    assert [said.foretells(outcome) for outcome in ("hang", "init-failure", "ok")] == [True, True, False]


def test_a_failure_says_that_some_tries_work():
    said, _ = judge(case(), (saying("some", Hit(("seen",), "hang", "it waits", by_chance=("ok", "crash"))),))
    assert said.why == "it waits; some launches end in crash instead; some launches work"


def test_what_works_by_and_large_names_what_may_go_wrong():
    said, _ = judge(case(), (SHAKY, SHAKY))
    assert (said.outcome, said.by_chance) == ("ok", ("crash",))
    assert "; some launches end in crash instead" in said.why


def test_a_failure_takes_no_chances_from_rules_that_change_nothing():
    said, _ = judge(case(), (SHAKY, ENDS))
    assert said.by_chance == ("init-failure",)


def test_nothing_comes_by_chance_where_nobody_knows_what_comes():
    said, _ = judge(case(of=unread(IMAGE, "pmix")), (LACKING, ENDS))
    assert (said.outcome, said.by_chance) == ("unknown", ())
    assert said.why == said.because


def undecided(of: Case, *names: str) -> tuple[str, ...]:
    found = attempt(of.ask, *names)
    return found.names if isinstance(found, Undecided) else ()


def test_a_question_names_every_fact_that_is_unknown():
    of = case(unread(HOST, "kernel"), unread(IMAGE, "pmix"))
    assert undecided(of, "host.kernel", "host.slurm", "image.pmix") == ("host.kernel", "image.pmix")


def test_a_fact_that_was_looked_for_and_is_not_there_is_known():
    of = case(absent(HOST, "gpu_driver"))
    assert undecided(of, "host.gpu_driver") == ()
    assert of.host.gpu_driver is None


@every_row("question", [lambda of: of.ask("image.mpi.version"), lambda of: of.have("image.mpi")])
def test_a_part_of_what_is_not_there_is_moot_even_if_another_fact_is_unknown(question):
    of = case(unread(HOST, "kernel"), absent(IMAGE, "mpi"))
    with pytest.raises(Moot):
        question(of)
    with pytest.raises(Moot):
        of.have("host.kernel", "image.mpi")


def test_a_field_that_is_read_is_asked_for():
    of = case(unread(HOST, "kernel", "slurm.mpi_types"), image(mpi=msgspec.structs.replace(MPI, device=None)))
    for read, name in (
        (lambda: of.host.kernel, "host.kernel"),
        (lambda: of.host.slurm and of.host.slurm.mpi_types, "host.slurm.mpi_types"),
        (lambda: of.image.mpi and of.image.mpi.device, "image.mpi.device"),
    ):
        found = attempt(read)
        assert isinstance(found, Undecided)
        assert found.names == (name,)
    assert of.host_facts.kernel is None


def test_facts_that_an_older_toolkit_never_asked_for_withhold_no_prediction():
    never, failed = case(msgspec.structs.replace(HOST, kernel=None)), case(unread(HOST, "kernel"))
    assert attempt(never.ask, "host.kernel", failed_only=True) is None
    assert isinstance(attempt(failed.ask, "host.kernel", failed_only=True), Undecided)
    assert undecided(never, "host.kernel") == ("host.kernel",)
