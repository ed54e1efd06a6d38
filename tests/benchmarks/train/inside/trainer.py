"""Run a trainer in the image; print the images per second of each epoch, without the first epoch.

The trainer ``imagenet_synthetic`` has rounds instead of epochs; the program prints all of its rounds.

Usage: trainer.py MODULE OPTION…   (options of the trainer; its output goes to a temporary folder)
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

module, *options = sys.argv[1:]
turns = Path(__file__).with_name("taking_turns.py")
with tempfile.TemporaryDirectory() as folder:
    # Run the trainer in a separate process, because ranks call os._exit when all have finished.
    subprocess.run([sys.executable, turns, module, "--output", folder, *options], check=True)
    if (Path(folder) / "metrics.jsonl").exists():
        records = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
        epochs = [one for one in records if one["record"] == "epoch"]
        timed = epochs if "steps" in records[0] else epochs[1:]
        told = {"rates": [one["images"] / one["seconds"] for one in timed]}
        if "test_accuracy" in epochs[-1]:
            told["accuracy"] = epochs[-1]["test_accuracy"]
        print("bench:", json.dumps(told))
