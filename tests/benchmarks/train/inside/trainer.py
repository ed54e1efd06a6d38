"""Run a trainer inside the image, and print its images a second: of each epoch but the first, or each round.

Usage: trainer.py MODULE OPTION…   (of the trainer; its output goes to a folder that is removed)
"""

import json
import runpy
import sys
import tempfile
from pathlib import Path

from baton import Baton

from toolkit.trainers.training.metrics import Metrics

module, *options = sys.argv[1:]
baton, written = Baton(), Metrics.epoch


def epoch(self, **values):
    """Write what was timed, and let the other program go on: the clock of the next epoch does not run yet."""
    written(self, **values)
    baton.hand_on()


Metrics.epoch = epoch
with tempfile.TemporaryDirectory() as folder:
    name = f"toolkit.trainers.{module}"
    sys.argv = [name, "--output", folder, *options]
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code:
            raise
    if (Path(folder) / "metrics.jsonl").exists():
        records = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
        epochs = [one for one in records if one["record"] == "epoch"]
        timed = epochs if "steps" in records[0] else epochs[1:]
        told = {"rates": [one["images"] / one["seconds"] for one in timed]}
        if "test_accuracy" in epochs[-1]:
            told["accuracy"] = epochs[-1]["test_accuracy"]
        print("bench:", json.dumps(told))
