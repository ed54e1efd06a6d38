"""Test the trainers in PyTorch: weights equal to one process, resume with other ranks, and refusals."""

import json

import pytest

from tests.full.trainers.boxes import TrainerBox

TOLERANCE = 1e-5
"""Largest allowed difference of a weight: another order of additions gave 2e-6 in 20 steps in float32."""

COMPARE = """
import json, torch
weights = {name: torch.load(f"/out/{name}/model.pt") for name in ("one", "two", "pieces")}
print("APART", json.dumps({
    name: max(float((one - other[key]).abs().max()) for key, one in weights["one"].items())
    for name, other in weights.items()
}))
"""


@pytest.fixture(scope="module")
def inside(engine, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return TrainerBox(engine, "torch-cpu", out, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")


STRATEGIES = ("ddp", "fsdp")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_20_steps_of_two_ranks_come_to_the_weights_of_one_process(inside, optimizer, strategy):
    options = f"--strategy {strategy} --optimizer {optimizer} --scaling none --fresh"
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
    assert (header["world_size"], header["strategy"], header["parameters"]) == (2, strategy, 407050)
    assert "torch" in header["versions"]
    assert epoch["images"] == 640
    assert result["model"] == "model.pt"


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_training_is_resumed_by_another_number_of_ranks(inside, strategy, before, after):
    name, options = f"resumed-{strategy}-{before}-{after}", f"--decay constant --strategy {strategy}"
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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_request_to_stop_writes_a_checkpoint_and_ends_with_75(inside, strategy):
    out = f"/out/stopped-{strategy}"
    status, said = inside(
        f"mkdir -p {out} && : > {out}/stop-asked; "
        f"sh /test/ranks.sh 2 residual {out} --epochs 2 --decay constant --strategy {strategy}"
    )
    assert status == 75, said
    assert "stopped on request" in said
    assert list((inside.out / f"stopped-{strategy}/checkpoints").iterdir())


def test_a_trainer_for_pytorch_alone_trains_and_names_its_strategy(inside):
    run = "python /example/spirals_torch.py --output /out/spirals --epochs 4"
    status, said = inside(f"{run} --strategy ddp")
    assert status == 0, said
    assert inside.records("spirals")[-1]["test_accuracy"] > 0.9
    status, said = inside(run)
    assert (status, said.strip()) == (
        2,
        "spirals: --strategy single: spirals has no model in TensorFlow; use --strategy ddp or fsdp",
    )


def test_a_start_without_the_place_of_the_ranks_is_one_line(inside):
    status, said = inside("WORLD_SIZE=2 RANK=0 python /test/small.py dense --output /out/x --strategy ddp")
    assert status == 2
    assert (
        said.strip() == "small: --strategy ddp: MASTER_ADDR, MASTER_PORT not set; use the launch mode torch"
    )
