"""Faults that were injected for real: root line, class, rank and retry equal the record."""

import json
from pathlib import Path

import pytest

from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

RECORD = Path(__file__).parents[3] / "faults" / "faults.jsonl"
FAULTS = [json.loads(line) for line in RECORD.read_text("utf-8").splitlines()]


def misses(faults):
    """Return the ids of faults whose root line, class, rank or retry is wrong, by what is wrong."""
    found = {"root": [], "class": [], "rank": [], "retry": []}
    for fault in faults:
        told = explain_output(Output(fault["log"]))
        text = " ".join(told.root.text.split()) if told.root else ""
        if not any(" ".join(root.split()) in text for root in fault["root"]):
            found["root"].append(fault["id"])
        if told.fault is None or told.fault.id not in fault["class"]:
            found["class"].append(fault["id"])
        if fault["rank"] and (told.root is None or told.root.rank != fault["rank"]):
            found["rank"].append(fault["id"])
        if fault["retry"] != "transient" and told.retry == "transient":
            found["retry"].append(fault["id"])
    return found


def test_there_are_many_faults_and_a_third_is_aside():
    aside = [fault for fault in FAULTS if fault["aside"]]
    assert len(FAULTS) >= 190
    assert len(aside) >= len(FAULTS) / 4


@pytest.mark.parametrize(("aside", "right"), [(False, 0.93), (True, 0.9)], ids=["known", "aside"])
def test_root_line_class_and_rank_are_those_of_the_record(aside, right):
    faults = [fault for fault in FAULTS if fault["aside"] is aside]
    wrong = misses(faults)
    most = len(faults) * (1 - right)
    assert {name: ids for name, ids in wrong.items() if len(ids) > most} == {}


def test_a_fault_that_repeats_is_never_called_transient():
    assert misses(FAULTS)["retry"] == []
