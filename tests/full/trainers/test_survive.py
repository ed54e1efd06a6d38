"""Test that a stopped, killed or failed training resumes and reaches the result of an undisturbed one."""

import json

import pytest

from toolkit.trainers.training import checkpoint

TRAIN = ("python", "-m", "toolkit.trainers.mnist", "--data", "/data", "--batch-size", "8", "--epochs", "2")
ONE = (*TRAIN, "--output", "/out")
TWO = ("mpirun", "--bind-to", "none", "-n", "2", *ONE, "--strategy", "horovod")

COMPARE = """
import sys, tensorflow
one, other = (tensorflow.keras.models.load_model(file).get_weights() for file in sys.argv[1:])
print("differ by", max(abs(a - b).max() for a, b in zip(one, other, strict=True)))
"""

# Rank 1 kills itself when there is a checkpoint from which the training can resume.
DYING = f"""
{" ".join(ONE)} --strategy horovod --epochs 60 &
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
    until ls /out/checkpoints 2> /dev/null | grep -q '^0'; do sleep 0.1; done
    kill -9 $!
fi
wait $!
"""

TERMINATED = f"""
{" ".join(ONE)} --epochs 200 &
until grep -qs '"record": "epoch"' /out/metrics.jsonl; do sleep 0.1; done
kill -TERM $!
wait $!
"""

# A checkpoint has 5 MB; the disk has space for one checkpoint, but not for two.
FULL = f"""
mkdir /dev/shm/out
dd if=/dev/zero of=/dev/shm/fill bs=1M count=56 status=none
{" ".join(TRAIN)} --output /dev/shm/out; echo "status $?"
ls -A /dev/shm/out/checkpoints
rm /dev/shm/fill
{" ".join(TRAIN)} --output /dev/shm/out; echo "status $?"
cp -r /dev/shm/out/. /out
"""


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def run(inside, few):
    """Return a function that runs a command in the image with one core per rank, for reproducible sums."""

    def go(out, *words):
        env = {"SLURM_CPUS_PER_TASK": "1", "TOOLKIT_JOB_DIR": "/out"}
        return inside(*words, binds={few: "/data:ro", out: "/out"}, env=env)

    return go


@pytest.fixture(scope="session")
def undisturbed(run, tmp_path_factory):
    folders = {}
    for ranks, words in ((1, ONE), (2, TWO)):
        folders[ranks] = tmp_path_factory.mktemp(f"undisturbed-{ranks}-")
        done = run(folders[ranks], *words)
        assert done.ok, done.lines
    return folders


@pytest.fixture
def difference(inside):
    def told(one, other):
        models = [f"/{number}/model.keras" for number in (1, 2)]
        done = inside("python", "-c", COMPARE, *models, binds={one: "/1:ro", other: "/2:ro"})
        assert done.ok, done.lines
        return float(done.lines[-1].removeprefix("differ by "))

    return told


def lines(folder, kind):
    read = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in read if line["record"] == kind]


def learnt(folder):
    """Return the epoch lines of the metrics, without values that depend on the machine."""
    timed = ("seconds", "images_per_second", "memory_bytes")
    return [
        {name: value for name, value in line.items() if name not in timed} for line in lines(folder, "epoch")
    ]


def stop(run, out, words):
    (out / "stop-asked").touch()  # with this file, a training stops after its first 32 steps
    done = run(out, *words)
    (out / "stop-asked").unlink()
    told = [line for line in done.lines if line.startswith("mnist: stopped on request")]
    assert (done.status, len(told)) == (75, 1), done.lines
    return done


def test_one_rank_that_was_stopped_twice_comes_to_the_very_same_model(run, out, undisturbed, difference):
    stop(run, out, ONE)
    assert checkpoint.names(out / "checkpoints") == ["000000-000000000256"]
    stop(run, out, ONE)
    done = run(out, *ONE)
    assert done.ok, done.lines
    said = "mnist: resumes from checkpoint 000000-000000000512 with epoch 1, of which 512 of 640 samples"
    assert any(line.startswith(said) for line in done.lines), done.lines
    assert learnt(out) == learnt(undisturbed[1])
    assert difference(out, undisturbed[1]) == 0
    assert [line["images"] for line in lines(out, "resumed")] == [256, 512]
    assert lines(out, "result")[0]["images"] == 1280
    again = run(out, *ONE)
    # TensorFlow 2.21 writes its own lines when it starts.
    said = [line for line in again.lines if line.startswith("mnist: ")]
    assert (again.status, len(said)) == (0, 1), again.lines
    assert said[0].startswith("mnist: the 2 epochs of /out are complete")
    other = run(out, *ONE, "--seed", "5")
    told = [
        line for line in other.lines if "the training in this folder has --seed 1, but this run has 5" in line
    ]
    assert (other.status, len(told)) == (2, 1), other.lines


def test_two_ranks_stop_together_and_go_on_to_the_same_end(run, out, undisturbed, difference):
    stop(run, out, TWO)
    done = run(out, *TWO)
    assert done.ok, done.lines
    assert [line["images"] for line in lines(out, "resumed")] == [512]
    assert [line["images"] for line in lines(out, "epoch")] == [1280]
    assert lines(out, "result")[0]["test_accuracy"] == lines(undisturbed[2], "result")[0]["test_accuracy"]
    assert difference(out, undisturbed[2]) < 1e-6


def test_another_number_of_ranks_trains_on_what_is_left(run, out):
    stop(run, out, TWO)
    done = run(out, *ONE)
    assert done.ok, done.lines
    assert any("this run has 1 device, the earlier run had 2" in line for line in done.lines), done.lines
    assert [line["images"] for line in lines(out, "epoch")] == [1280]
    assert [line["world_size"] for line in lines(out, "resumed")] == [1]


def test_a_damaged_checkpoint_is_told_and_the_one_before_comes_to_the_same(run, out, undisturbed, difference):
    assert run(out, *ONE).ok
    newest, before = checkpoint.names(out / "checkpoints")[:2]
    state = out / "checkpoints" / newest / checkpoint.STATE
    state.write_bytes(state.read_bytes()[:-1])
    (out / "model.keras").unlink()
    done = run(out, *ONE)
    assert done.ok, done.lines
    assert any(
        f"{newest}: not loaded: state.npy differs from what was written" in line for line in done.lines
    )
    assert any(f"resumes from checkpoint {before} with epoch 2" in line for line in done.lines)
    assert learnt(out) == learnt(undisturbed[1])
    assert difference(out, undisturbed[1]) == 0


def test_where_all_checkpoints_are_damaged_the_training_begins_anew_only_if_asked(run, out):
    assert run(out, *ONE).ok
    kept = checkpoint.names(out / "checkpoints")
    for name in kept:
        state = out / "checkpoints" / name / checkpoint.STATE
        state.write_bytes(state.read_bytes()[:-1])
    done = run(out, *TWO, "--epochs", "8")
    told = [line for line in done.lines if line.startswith("mnist: /out/checkpoints: all 2 checkpoints are")]
    assert (done.status, len(told)) == (1, 1), done.lines
    assert checkpoint.names(out / "checkpoints") == kept
    assert run(out, *ONE, "--fresh").ok
    assert not lines(out, "resumed")


def test_a_training_that_diverges_within_an_epoch_writes_no_checkpoint_of_it(run, out):
    words = ("--learning-rate", "1e30", "--batch-size", "1", "--checkpoint-seconds", "0.0001")
    done = run(out, *ONE, *words)
    told = [line for line in done.lines if line.startswith("mnist: the training diverged in epoch 1: ")]
    assert (done.status, len(told)) == (1, 1), done.lines
    assert not checkpoint.names(out / "checkpoints")


def test_a_full_disk_is_one_sentence_and_keeps_the_checkpoint_before(run, out, undisturbed, difference):
    done = run(out, "sh", "-c", FULL)
    told = [line for line in done.lines if "cannot be written: No space left on device" in line]
    assert len(told) == 1, done.lines
    assert "the previous checkpoint 000001-000000000000 is kept" in told[0]
    at = done.lines.index("status 1")
    assert done.lines[at + 1] == "000001-000000000000"
    assert done.lines[-1] == "status 0"
    assert learnt(out) == learnt(undisturbed[1])
    assert difference(out, undisturbed[1]) == 0


def test_where_a_rank_is_killed_all_end_and_the_training_goes_on(run, out):
    dead = run(out, *TWO[:5], "sh", "-c", DYING)
    assert dead.status not in (0, 75)
    assert not dead.timed_out
    assert not any("Traceback" in line for line in dead.lines), dead.lines
    (name, *_) = checkpoint.names(out / "checkpoints")
    done = run(out, *TWO, "--epochs", "8")
    assert done.ok, done.lines
    epochs = lines(out, "epoch")
    assert [line["epoch"] for line in epochs] == list(range(1, len(epochs) + 1))
    assert {line["images"] for line in epochs} == {1280}
    assert lines(out, "resumed")[0]["epoch"] == int(name.split("-")[0]) + 1


def test_a_signal_to_a_rank_stops_it_too(run, out):
    done = run(out, "sh", "-c", TERMINATED)
    assert done.status == 75, done.lines
    assert checkpoint.names(out / "checkpoints")
