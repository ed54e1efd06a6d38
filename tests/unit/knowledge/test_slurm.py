"""Test that the table of Slurm's states and reasons is consistent."""

import re

from tests.unit.tables import every_row
from toolkit.knowledge.slurm import slurm, state_of


def test_a_word_for_a_state_has_one_meaning():
    words = [word for several in slurm().states.of.values() for word in several]
    assert len(words) == len(set(words))
    assert (state_of("NODE_FAIL"), state_of("CANCELLED+"), state_of("NEWLY_INVENTED")) == (
        "failed",
        "cancelled",
        "unknown",
    )


@every_row("line", [slurm().forgotten, slurm().failed, slurm().unanswered])
def test_a_line_finds_its_sample(line):
    assert re.search(line.pattern, line.sample)


def test_reasons_that_are_sorted_are_said_in_words():
    reasons = slurm().reasons
    assert set(reasons.known) > {*reasons.in_turn, *reasons.passed_over}
    assert not set(reasons.in_turn) & set(reasons.passed_over)
    for row in reasons.like:
        re.compile(row.pattern)
        assert not [code for code in reasons.known if "," not in code and re.match(row.pattern, code)]
