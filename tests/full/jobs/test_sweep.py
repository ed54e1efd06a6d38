"""Test sweeps of a user's script from this machine and from the login node."""

import csv
import json

from tests.services.jobs import last_record, launched, on_login
from tests.services.program import toolkit

TRAIN = """import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--note")
options = parser.parse_args()
seed = int(os.environ["TOOLKIT_SWEEP_SEED"])
assert os.environ["TOOLKIT_SWEEP_NOTE"] == options.note
open("model.txt", "w").write(f"{options.note} {seed}")
if options.lr > 1:
    raise SystemExit(3)
for epoch in range(3):
    print(f"epoch {epoch}: loss: {options.lr * seed / (epoch + 1):.4f} acc={1 - options.lr:.2f}", flush=True)
"""
NOTE = "it's $(id), 50%"
SWEEP = (
    "--sweep", "lr=0.1,0.5,2", "--sweep", "seed=1..2", "--sweep", f'note="{NOTE}"', "--sweep-parallel", "3",
)  # fmt: skip


def test_a_sweep_from_the_desk_to_its_table(on, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    words = ("train.py", *SWEEP, "--", "--lr", "{lr}", "--note", "{note}")
    shown = launched(on, "--dry-run", *words, cwd=folder)
    assert "#SBATCH --array=0-5%3" in shown.stdout
    assert "  5  lr=2 seed=2" in shown.stderr
    done = launched(on, *words, ok=False, cwd=folder)
    assert done.returncode == 1
    assert [*folder.iterdir()] == [folder / "train.py"]
    record = last_record()
    assert [task["state"] for task in record["tasks"]] == ["completed"] * 4 + ["failed"] * 2
    toolkit("report", record["key"], "-o", str(tmp_path / "out"))
    with (tmp_path / "out" / "sweep.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert [(row["lr"], row["seed"], row["note"]) for row in rows] == [
        (lr, seed, NOTE) for lr in ("0.1", "0.5", "2") for seed in ("1", "2")
    ]
    assert [row["loss"] for row in rows] == ["0.0333", "0.0667", "0.1667", "0.3333", "", ""]
    assert json.loads((tmp_path / "out" / "sweep.json").read_text())["best"] == {"loss": 0, "acc": 0}
    toolkit("jobs", "fetch", record["key"], "model.txt", "-o", str(tmp_path / "files"))
    wrote = {path.parent.name: path.read_text() for path in (tmp_path / "files").rglob("model.txt")}
    assert wrote == {str(task): f"{NOTE} {task % 2 + 1}" for task in range(6)}
    again = toolkit("launch", "--from-job", record["key"], "--array", "1", "--sbatch=--comment=again")
    assert again.returncode == 0
    assert toolkit("jobs", "logs").stdout.startswith("==> task 1: lr=0.1 seed=2 ")


def test_a_sweep_of_a_trainer_on_two_nodes_has_its_metrics(on, few):
    words = (
        "mnist",
        "--nodes",
        "2",
        "--data",
        str(few),
        "--sweep",
        "rate=0.001,0.1",
        "--sweep-parallel",
        "1",
    )
    bad = launched(on, *words, "--", "--learning-rate", "x{rate}", ok=False)
    assert "--learning-rate" in bad.stderr
    launched(on, *words, "--", "--epochs", "1", "--learning-rate", "{rate}")
    told = json.loads(toolkit("report", "--json").stdout)
    assert [(task["values"], task["state"]) for task in told["tasks"]] == [
        ({"rate": "0.001"}, "completed"),
        ({"rate": "0.1"}, "completed"),
    ]
    assert all(0 < task["figures"]["test_accuracy"] <= 1 for task in told["tasks"])
    assert set(told["best"]) == {"loss", "accuracy", "test_loss", "test_accuracy", "images/s"}


def test_a_sweep_from_the_login_node_writes_where_it_is_told(cluster, on):
    launched(on, "--no-preflight", "--", "true")  # copies the image
    line = (
        "rm -rf sweep && mkdir sweep && cd sweep && "
        "image=$(ls -t /work/ada/toolkit/images/*.sif | head -1) && "
        "toolkit launch --image $image --sweep n=1..3 --no-preflight "
        '-- sh -c \'echo loss: 0.{n} > "$TOOLKIT_JOB_DIR"/out.txt; cat "$TOOLKIT_JOB_DIR"/out.txt\' && '
        "toolkit report && ls && cat /work/ada/toolkit/runs/sh-*/[0-2]/out.txt"
    )
    said = on_login(cluster, line).splitlines()
    assert "loss: 0.3" in said
    assert [row.split()[-1] for row in said if "completed  0." in row] == ["0.1*", "0.2", "0.3"]
    assert "all tasks start in the same folder" not in said
