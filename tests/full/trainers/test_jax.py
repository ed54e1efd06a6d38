"""Test the trainers in JAX: weights equal to one process, resume with other ranks, accuracy, and refusals."""

import json
import re
import signal

import pytest

from tests.full.trainers.boxes import TrainerBox

TOLERANCE = 1e-5
"""Largest allowed difference of a weight: another order of additions gave 5e-6 in 20 steps in float32."""

COMPARE = """
import json, numpy
weights = {name: numpy.load(f"/out/{name}/model.npz") for name in ("one", "two", "pieces")}
print("APART", json.dumps({
    name: max(float(abs(weights["one"][key] - other[key]).max()) for key in other.files)
    for name, other in weights.items()
}))
"""

FULL = "python -m toolkit.trainers.mnist --data /data --strategy jax"

TWO = """
for rank in 0 1; do
    JAX_COORDINATOR_ADDRESS=127.0.0.1:20001 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=$rank LOCAL_RANK=$rank \\
        LOCAL_WORLD_SIZE=2 $RUN > /out/$rank.log 2>&1 &
    pids="$pids $!"
done
"""


@pytest.fixture(scope="module")
def inside(engine, tmp_path_factory):
    return TrainerBox(engine, "jax-cpu", tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_20_steps_of_two_ranks_come_to_the_weights_of_one_process(inside, optimizer):
    options = f"--strategy jax --optimizer {optimizer} --scaling none --fresh"
    status, said = inside(
        f"sh /test/ranks.sh 1 dense /out/one --batch-size 32 {options} && "
        f"sh /test/ranks.sh 2 dense /out/two --batch-size 16 {options} && "
        f"sh /test/ranks.sh 2 dense /out/pieces --batch-size 8 --accumulate 2 {options} && "
        f"python -c '{COMPARE}'"
    )
    assert status == 0, said
    apart = json.loads(said.rpartition("APART ")[2])
    assert 0 < apart["two"] < TOLERANCE
    assert 0 < apart["pieces"] < TOLERANCE
    header, epoch, result = inside.records("two")
    assert (header["world_size"], header["strategy"], header["parameters"]) == (2, "jax", 407050)
    assert "jax" in header["versions"]
    assert epoch["images"] == 640
    assert result["model"] == "model.npz"


def test_a_line_during_an_epoch_shows_the_mean_loss_of_all_ranks(inside):
    options = "--batch-size 4 --log-seconds 0.001 --strategy jax --fresh"
    status, said = inside(f"sh /test/ranks.sh 2 dense /out/lines {options}")
    assert status == 0, said
    losses = [float(loss) for loss in re.findall(r"epoch 1/\d+  \d+%  loss (\d+\.\d+)", said)]
    whole = inside.records("lines")[1]["loss"]
    # The lines leave out the end of the epoch, where the loss is smallest.
    assert losses
    assert sum(losses) / len(losses) < 1.6 * whole, (losses, whole)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)])
def test_a_training_is_resumed_by_another_number_of_ranks(inside, before, after):
    name, options = f"resumed-{before}-{after}", "--decay constant --strategy jax"
    status, said = inside(
        f"sh /test/ranks.sh {before} residual /out/{name} --epochs 1 {options} && "
        f"sh /test/ranks.sh {after} residual /out/{name} --epochs 2 {options}"
    )
    assert status == 0, said
    _, first, _, second, result = found = inside.records(name)
    assert [one["record"] for one in found] == ["header", "epoch", "resumed", "epoch", "result"]
    assert "resumes from checkpoint 000001-000000000000" in said
    assert second["loss"] < first["loss"]
    assert result["epochs"] == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=lambda one: one.name)
def test_a_signal_to_one_rank_writes_a_checkpoint_and_ends_all_with_75(inside, number):
    run = "python /test/small.py dense --output /out/signalled --strategy jax --fresh --epochs 10000"
    stop = (
        'until grep -qs \'"record": "epoch"\' /out/signalled/metrics.jsonl; do sleep 0.2; done\n'
        f"set -- $pids; kill -{number.name[3:]} $1; wait $1; first=$?; wait $2; second=$?\n"
        "cat /out/0.log; echo $first $second"
    )
    status, said = inside(f"rm -rf /out/signalled\n{TWO.replace('$RUN', run)}\n{stop}")
    assert status == 0
    assert said.endswith("\n75 75"), said
    assert "stopped on request" in said
    assert list((inside.out / "signalled/checkpoints").iterdir())


def test_a_killed_training_is_resumed_by_one_process(inside):
    run = "python /test/small.py dense --output /out/killed --strategy jax --epochs 40"
    kill = (
        "until ls /out/killed/checkpoints 2> /dev/null | grep -q '^0'; do sleep 0.2; done\n"
        f"kill -KILL $pids; wait; {run}"
    )
    status, said = inside(f"{TWO.replace('$RUN', run)}\n{kill}")
    assert status == 0, said
    assert "resumes from checkpoint" in said
    assert inside.records("killed")[-1]["epochs"] == 40


def test_two_ranks_learn_mnist(inside, mnist):
    wait = "status=0; for pid in $pids; do wait $pid || status=$?; done; cat /out/0.log; exit $status"
    run = f"{FULL} --output /out/full"
    status, said = inside(f"{TWO.replace('$RUN', run)}\n{wait}", data=mnist, timeout=1800)
    assert status == 0, said
    assert inside.records("full")[-1]["test_accuracy"] >= 0.977


def test_a_trainer_for_jax_alone_trains_and_names_its_strategy(inside):
    run = "python /example/spirals_jax.py --output /out/spirals --epochs 4"
    status, said = inside(f"{run} --strategy jax")
    assert status == 0, said
    assert inside.records("spirals")[-1]["test_accuracy"] > 0.9
    status, said = inside(run)
    assert status == 2
    assert (
        said.strip() == "spirals: --strategy single: spirals has no model in TensorFlow; use --strategy jax"
    )


def test_a_start_without_the_address_of_the_ranks_is_one_line(inside):
    run = "python /test/small.py dense --output /out/x --strategy jax"
    status, said = inside(f"JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0 {run}")
    assert status == 2
    missing = "JAX_COORDINATOR_ADDRESS not set; use the launch mode jax"
    assert said.strip() == f"small: --strategy jax: {missing}"
