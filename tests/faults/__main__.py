"""Make programs fail for real, record what they write, and compare ``toolkit explain`` with the truth.

``make faults`` runs the faults of ``local.toml`` on this machine, and in containers of the image of the
virtual cluster. ``python -m tests.faults ID...`` runs some of them. ``--record`` keeps what they wrote in
``local.jsonl``, which ``tests/unit/engine/logs/test_faults.py`` replays.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.model.finding import OutputExplanation

HERE = Path(__file__).parent
IMAGE = "toolkit-node"
LIMITS = ("--rm", "--memory", "512m", "--pids-limit", "256", "--entrypoint", "bash")
SECONDS = 120.0


def faults() -> list[dict[str, Any]]:
    """Return the faults of ``local.toml``."""
    return list(tomllib.loads((HERE / "local.toml").read_text("utf-8"))["fault"])


def inject(fault: dict[str, Any]) -> tuple[str, int]:
    """Run the command of a fault and return what it wrote to both streams, and its exit status."""
    command = fault["command"].strip()
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        if fault["where"] == "here":
            words = ["bash", "-c", command]
        else:
            started = f"cd /tmp 2>/dev/null; {command}"
            words = ["docker", "run", *LIMITS, *fault.get("options", ()), IMAGE, "-c", started]
        done = subprocess.run(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        text = done.stdout.decode("utf-8", "replace").replace(folder, "/home/ann/project")
    return text, done.returncode


def wrong(fault: dict[str, Any], told: OutputExplanation) -> list[str]:
    """Return which of root line, class, rank and retry differ from the truth."""
    text = " ".join(told.root.text.split()) if told.root else ""
    bad = [] if any(" ".join(root.split()) in text for root in fault["root"]) else ["root"]
    if told.fault is None or told.fault.id not in fault["class"]:
        bad.append("class")
    if fault.get("rank") and (told.root is None or told.root.rank != fault["rank"]):
        bad.append("rank")
    if fault["retry"] != "any" and told.retry != fault["retry"]:
        bad.append("retry")
    return bad


def main() -> int:
    """Inject the faults, print a line for each, and return 1 if an explanation is wrong."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("ids", nargs="*", metavar="ID")
    options.add_argument("--record", action="store_true", help="write local.jsonl")
    asked = options.parse_args()
    records, bad = [], 0
    for fault in faults():
        if asked.ids and fault["id"] not in asked.ids:
            continue
        log, status = inject(fault)
        told = explain_output(Output(log))
        differs = wrong(fault, told)
        bad += bool(differs)
        found = f"{told.fault.id if told.fault else '-'} {told.retry}: {told.root.text if told.root else ''}"
        print(f"{fault['id']:24} {', '.join(differs) or 'right':14} {found[:100]}", flush=True)
        truth = {name: fault[name] for name in ("id", "root", "class", "retry")}
        records.append(
            {**truth, "rank": fault.get("rank"), "producer": fault["where"], "exit": status, "log": log}
        )
    print(f"{len(records)} faults, {len(records) - bad} explained right")
    if asked.record:
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        (HERE / "local.jsonl").write_text(lines, "utf-8")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
