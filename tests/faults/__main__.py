"""Cause real failures of programs, record their output, and compare ``toolkit explain`` with the known
causes.

``make faults`` runs the faults of ``local.toml`` and ``ranks.toml`` on this machine, in containers, and on a
virtual cluster. ``python -m tests.faults ID...`` runs some of the faults. ``--record`` saves the output in
``local.jsonl`` and ``ranks.jsonl``, which ``tests/unit/engine/logs/test_faults.py`` reads. ``--healthy`` runs
the programs of ``healthy.toml``, which succeed.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.faults.places import Place, container, place
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.model.finding import OutputExplanation

HERE = Path(__file__).parent
TABLES = ("local", "ranks")
Fault = dict[str, Any]


def table(name: str) -> dict[str, list[Fault]]:
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))


def inject(faults: list[Fault], start: Fault) -> Iterator[tuple[Fault, str, int]]:
    """Run the faults of one place; yield each fault with its output on both streams and its exit status.

    A fault with ``options`` runs in its own container.
    """
    joint = [fault for fault in faults if not fault.get("options")]
    if joint:
        with place(start["where"], start.get("image", "")) as at:
            for fault in joint:
                yield fault, *_run(at, fault, start)
    for fault in faults:
        if fault.get("options"):
            with container(start["image"], fault["options"]) as at:
                yield fault, *_run(at, fault, start)


def _run(at: Place, fault: Fault, start: Fault) -> tuple[str, int]:
    program = f"{start.get('prelude', '')}{fault['program']}" if fault.get("program") else ""
    return at.run((fault.get("command") or start["launch"]).strip(), program)


def wrong(fault: dict[str, Any], told: OutputExplanation) -> list[str]:
    text = " ".join(told.root.text.split()) if told.root else ""
    bad = [] if any(" ".join(root.split()) in text for root in fault["root"]) else ["root"]
    if told.fault is None or told.fault.id not in fault["class"]:
        bad.append("class")
    if fault.get("rank") and (told.root is None or told.root.rank != fault["rank"]):
        bad.append("rank")
    if fault["retry"] != "any" and told.retry != fault["retry"]:
        bad.append("retry")
    return bad


def judge(fault: Fault, log: str, status: int) -> tuple[bool, Fault]:
    """Print toolkit's explanation of a fault; return whether it is right, and the record to save."""
    told = explain_output(Output(log))
    differs = wrong(fault, told)
    found = f"{told.fault.id if told.fault else '-'} {told.retry}: {told.root.text if told.root else ''}"
    print(f"{fault['id']:26} {', '.join(differs) or 'right':18} {found[:100]}", flush=True)
    truth = {name: fault[name] for name in ("id", "root", "class", "retry")}
    more: Fault = {name: fault[name] for name in ("cause", "aside") if name in fault}
    rank = fault.get("rank")
    return not differs, {
        **truth,
        **more,
        "rank": rank,
        "producer": fault["where"],
        "exit": status,
        "log": log,
    }


def judge_healthy(program: Fault, log: str, status: int) -> tuple[bool, Fault]:
    """Print what toolkit finds in a successful program; return whether it finds nothing, and the record."""
    told = explain_output(Output(log))
    quiet = not told.root and not any(one.severity == "error" for one in told.findings)
    said = f"{told.fault.id}: {told.root.text}" if told.fault and told.root else ""
    print(f"{program['id']:26} exit {status} {'quiet' if quiet else 'FOUND'} {said[:90]}", flush=True)
    return quiet and status == 0, {
        "id": program["id"],
        "producer": program["where"],
        "exit": status,
        "log": log,
    }


def record(name: str, made: dict[str, Fault], order: list[str]) -> None:
    """Write the records of ``NAME.jsonl``; records in ``made`` replace older records of the same faults.

    The file has the records in the order of the ids in ``order``. Records with other ids follow at the end,
    such as records from GPU machines.
    """
    file = HERE / f"{name}.jsonl"
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    kept = {old["id"]: old for old in map(json.loads, lines)} | made
    ids = [*(one for one in order if one in kept), *(one for one in kept if one not in order)]
    file.write_text("".join(f"{json.dumps(kept[fault])}\n" for fault in ids), "utf-8")


def main() -> int:
    """Run the programs, print a line for each, and return 1 if an explanation is wrong, else 0."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("ids", nargs="*", metavar="ID", help="programs, or places such as torch")
    options.add_argument("--record", action="store_true", help="write the files of records")
    options.add_argument("--healthy", action="store_true", help="run the programs that succeed")
    asked = options.parse_args()
    tables = {name: table(name) for name in TABLES}
    starts = [(name, start) for name in TABLES for start in tables[name]["start"]]
    right: list[bool] = []
    for name, start in starts:
        source = "healthy" if asked.healthy else name
        rows = table("healthy")["healthy"] if asked.healthy else tables[name]["fault"]
        some = [row for row in rows if row["where"] == start["where"]]
        some = [row for row in some if not asked.ids or {row["id"], row["where"]} & set(asked.ids)]
        for row, log, status in inject(some, start):
            fine, kept = (judge_healthy if asked.healthy else judge)(row, log, status)
            right.append(fine)
            if asked.record:
                record(source, {row["id"]: kept}, [one["id"] for one in rows])
    print(f"{len(right)} programs, {sum(right)} explained right")
    return int(not all(right))


if __name__ == "__main__":
    sys.exit(main())
