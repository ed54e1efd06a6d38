"""What job output means: every signature finds its own sample, and nothing else is claimed."""

import re

import pytest

from toolkit import knowledge
from toolkit.engine.explain import explain
from toolkit.engine.registry import RULES

SIGNATURES = knowledge.signatures()


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.id)
def test_a_signature_finds_its_sample(signature):
    found = explain(f"something before\n{signature.sample}\nsomething after\n")
    assert signature.title in [f.title for f in found]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.id)
def test_a_signature_is_tied_to_a_rule_or_to_none(signature):
    assert signature.finding in {"", *(rule.id for rule in RULES)}
    assert re.compile(signature.pattern)
    assert signature.fix
    assert signature.source


def test_ids_of_signatures_are_unique():
    assert len({s.id for s in SIGNATURES}) == len(SIGNATURES) >= 25


def test_the_evidence_names_the_lines():
    (finding,) = explain("hello\n[m2:00527] OPAL ERROR: Unreachable in file ext3x_client.c at line 112\n")
    assert finding.evidence == (
        "line 2: [m2:00527] OPAL ERROR: Unreachable in file ext3x_client.c at line 112",
    )


def test_a_cause_stands_before_its_consequence():
    consequence = "srun: error: node2: task 1: Exited with exit code 1"
    text = f"{consequence}\n[n] OPAL ERROR: Unreachable in file pmix3x_client.c\n"
    assert [f.severity for f in explain(text)] == ["error", "info"]


def test_nothing_is_said_of_output_that_is_not_known():
    assert explain("epoch 1: accuracy 0.97\n") == ()


def test_a_long_line_and_much_output_do_no_harm():
    assert explain("x" * 5_000_000 + "\n" + "y\n" * 10_000) == ()
