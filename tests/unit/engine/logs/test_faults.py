"""Test the root line, class, rank and retry that toolkit reports for injected faults and public logs."""

import json
import tomllib
from pathlib import Path
from typing import Any

from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output

RECORD = Path(__file__).parents[3] / "faults"
MARKS = [f"step {n} loss 0.{900 - n} error 0.004{n:02d}\n" for n in range(60)]
ENDING = """\
srun: error: node1: task 0: Exited with exit code 1
srun: Terminating StepId=812.0
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: error: node2: task 1: Terminated
"""


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORD / f"{name}.jsonl").read_text("utf-8").splitlines()]


FAULTS = read("faults")
REPORTS = read("reports")
GPU = read("gpu")
LOCAL = read("local")
RANKS = read("ranks")
HEALTHY = [*read("healthy"), *read("healthy-reports")]

WRONG = {
    "ddp-interleaved": {"class"},  # the lines of the tracebacks of several ranks are mixed
    "comsol-nan": {"root"},  # the message is four lines after the heading
    "rpc-reset": {"root", "class"},  # the log has only warnings, and no line says that the program ended
    "n45-rcps-buildscripts-439": {"class"},  # toolkit has no class for faults of licences
    "n45-LlamaFactory-3839": {"root"},  # the reason is in the third line of an exception of Ascend
    "n46-PanguWeather-1": {"root"},  # several ranks write at once, and break the line
    "n45-horovod-2097": {"class"},  # the report breaks the line before its reason
    "n49-32": {"root", "class"},  # the step was cancelled, and the program then failed in its own way
}
"""Known errors of `toolkit explain` by the id of a record; a new entry needs a reason."""


def squeezed(text: str) -> str:
    return " ".join(text.split())


def misses(faults: list[dict[str, Any]], inside: bool = False) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"root": [], "class": [], "rank": [], "retry": []}
    for fault in faults:
        log = f"{''.join(MARKS)}{fault['log']}\n{ENDING}" if inside else fault["log"]
        told = explain_output(Output(log))
        text = squeezed(told.root.text) if told.root else ""
        if not any(squeezed(root) in text for root in fault["root"]):
            found["root"].append(fault["id"])
        if told.fault is None or told.fault.id not in fault["class"]:
            found["class"].append(fault["id"])
        if fault.get("rank") and (told.root is None or told.root.rank != fault["rank"]):
            found["rank"].append(fault["id"])
        if "transient" not in fault["retry"] and told.retry == "transient":
            found["retry"].append(fault["id"])
    return found


def test_there_are_many_faults_and_a_third_is_aside():
    aside = [fault for fault in FAULTS if fault["aside"]]
    assert len(FAULTS) >= 190
    assert len(aside) >= len(FAULTS) / 4


def unexpected(faults: list[dict[str, Any]], inside: bool = False) -> dict[str, list[str]]:
    found = misses(faults, inside)
    return {
        name: new
        for name, ids in found.items()
        if (new := [one for one in ids if name not in WRONG.get(one, ())])
    }


@every_row("inside", [False, True], ids=["alone", "inside a job"])
def test_root_line_class_and_rank_are_those_of_the_record(inside):
    assert unexpected(FAULTS, inside) == {}


@every_row("inside", [False, True], ids=["alone", "inside a job"])
def test_root_line_and_class_are_those_of_public_reports(inside):
    assert unexpected(REPORTS, inside) == {}


def test_each_named_mistake_still_happens():
    faults = [fault for fault in [*FAULTS, *REPORTS] if fault["id"] in WRONG]
    found = misses(faults)
    assert {
        fault["id"]: {name for name, ids in found.items() if fault["id"] in ids} for fault in faults
    } == WRONG


def test_faults_of_a_gpu_have_root_line_class_and_rank():
    assert {name: ids for name, ids in misses(GPU).items() if ids} == {}


def test_faults_of_make_faults_have_root_line_class_and_rank():
    assert {name: ids for name, ids in misses(LOCAL).items() if ids} == {}


@every_row("aside", [False, True], ids=["known", "aside"])
def test_faults_of_ranks_and_runtimes_have_root_line_class_and_rank(aside):
    """The authors held out the faults with `aside` when they wrote the first rules; see
    tests/faults/README.md.
    """
    faults = [fault for fault in RANKS if fault.get("aside", False) is aside]
    assert len(faults) >= 70
    assert {name: ids for name, ids in misses(faults).items() if ids} == {}


@every_row("record", HEALTHY, ids=lambda record: record["id"])
def test_a_program_that_succeeds_has_no_root_line_and_no_error(record):
    told = explain_output(Output(record["log"]))
    assert (record["exit"], told.root) == (0, None)
    assert [found.id for found in told.findings if found.severity == "error"] == []


@every_row(("name", "records"), [("local", LOCAL), ("ranks", RANKS)])
def test_the_record_of_make_faults_has_each_fault_of_its_table(name, records):
    table = tomllib.loads((RECORD / f"{name}.toml").read_text("utf-8"))["fault"]
    truth = [{key: fault[key] for key in ("id", "root", "class", "retry")} for fault in table]
    assert [{key: record[key] for key in truth[0]} for record in records] == truth


@every_row("faults", [FAULTS, REPORTS, GPU, LOCAL, RANKS], ids=lambda faults: faults[0]["id"])
def test_a_fault_that_repeats_is_never_called_transient(faults):
    assert misses(faults)["retry"] == []


def test_each_record_has_an_id_and_a_root_line_of_its_own_log():
    every = [*FAULTS, *REPORTS, *GPU, *LOCAL, *RANKS]
    assert len({fault["id"] for fault in every}) == len(every)
    lost = [f["id"] for f in every if not any(squeezed(r) in squeezed(f["log"]) for r in f["root"])]
    assert lost == []
    assert all(report["source"] and report["cause"] for report in REPORTS)
