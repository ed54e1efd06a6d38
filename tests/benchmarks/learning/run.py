"""Measure the accuracy with large batches, and the speed with and without features such as XLA.

Usage: ``python -m tests.benchmarks.learning.run [--only PART]``.

The benchmark trains MNIST's dense network with the sets of options below in the training image, which takes
some minutes. It writes build/bench/learning.json and docs/images/learning.svg, and prints the tables of
docs/learning-benchmarks.md.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.learning.picture import draw
from toolkit.data import cache_dir
from toolkit.errors import CheckFailed, Missing, ToolkitError
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.engine import connect

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
_BASE = {"learning_rate": 0.05, "optimizer": "sgd", "momentum": 0.9, "reference_batch": 64, "epochs": 8}
_LARGE = {**_BASE, "batch": 4096}
RECIPES: tuple[dict[str, Any], ...] = (
    {**_BASE, "name": "batch 64", "batch": 64},
    {**_LARGE, "name": "batch 4096, rate not scaled", "scaling": "none"},
    {**_LARGE, "name": "batch 4096, rate scaled", "scaling": "linear"},
    {**_LARGE, "name": "batch 4096, scaled, warm-up", "scaling": "linear", "warmup_epochs": 5.0},
    {**_LARGE, "name": "batch 4096, scaled by the root", "scaling": "sqrt"},
)
TURNS = {
    "xla": ("without XLA", "with XLA"),
    "dropout": ("drawn by Keras", "drawn from bits"),
    "pooling": ("pooled after ReLU", "pooled first"),
    "biases": ("all gradients", "none of such biases"),
}
"""Features to compare: the names of the columns without and with the feature."""


def inside(recipe: str, program: str, *words: str) -> list[dict[str, Any]]:
    """Run a program of this folder in the training image; return the JSON objects that it printed."""
    digits = cache_dir() / "data" / "mnist"
    if not digits.is_dir():
        raise Missing(f"MNIST is not in {digits}", fix="`toolkit data get mnist`")
    binds = {
        str(HERE): "/bench:ro",
        str(digits): "/data:ro",
        str(ROOT / "toolkit"): "/opt/toolkit/lib/toolkit:ro",
    }
    box = Box(f"toolkit/{recipe}:latest", binds=binds, memory=6 << 30, timeout=1800.0)
    with contextlib.closing(connect(timeout=600)) as client:
        done = run_once(client, box, ("python", f"/bench/{program}.py", "/data", *words))
    if not done.ok:
        raise CheckFailed(f"{program}: exited with status {done.status}", fix="\n".join(done.lines[-5:]))
    return [json.loads(line) for line in done.lines if line.startswith("{")]


def accuracies(curves: list[dict[str, Any]]) -> list[str]:
    rows = ["| recipe | test accuracy after 8 epochs | largest loss on the way |", "|---|---|---|"]
    for recipe in RECIPES:
        ours = [one for one in curves if one["name"] == recipe["name"]]
        last = ", ".join(f"{one['tests'][-1]:.4f}" if not one.get("error") else "diverged" for one in ours)
        worst = max(loss for one in ours for _, loss in one["curve"])
        rows.append(f"| {recipe['name']} | {last} | {worst:.3g} |")
    return rows


def speeds(found: list[dict[str, Any]], without: str, with_it: str) -> list[str]:
    rows = [
        f"| model | batch | images/s, {without} | {with_it} | ratio (least to most) |",
        "|---|---|---|---|---|",
    ]
    for one in found:
        ratios = sorted(one["ratios"])
        span = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        rates = " | ".join(f"{one[side]:,.{0 if one[side] > 100 else 1}f}" for side in ("without", "with"))
        rows.append(f"| {one['model']} | {one['batch']} | {rates} | {span} |")
    return rows


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.learning.run", description=__doc__)
    parser.add_argument("--recipe", default="tf2.21-cpu", help="the training image's")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=9, help="turns with and without what is compared")
    parser.add_argument("--only", choices=("curves", *TURNS), help="a part of it")
    arguments = parser.parse_args(words)
    file = ROOT / "build" / "bench" / "learning.json"
    known = json.loads(file.read_text()) if file.is_file() else {}
    print(f"{os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}\n", flush=True)
    try:
        if arguments.only in (None, "curves"):
            lines = "\n".join(json.dumps({**one, "seeds": arguments.seeds}) for one in RECIPES)
            known["curves"] = inside(arguments.recipe, "inside", lines)
            print(*accuracies(known["curves"]), sep="\n")
            draw(known["curves"], ROOT / "docs" / "images" / "learning.svg")
        for what, names in TURNS.items():
            if arguments.only in (None, what):
                known[what] = inside(arguments.recipe, "turns", what, str(arguments.rounds))
                print(*speeds(known[what], *names), sep="\n")
    except ToolkitError as error:
        print(error, file=sys.stderr)
        return 1
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
