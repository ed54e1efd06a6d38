"""Trainers in PyTorch: the weights of one process, resume with other ranks, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.services.program import ROOT, toolkit
from tests.services.workers import one_at_a_time
from toolkit.run.docker.containers import Box, run_once

SCRIPTS = Path(__file__).parent / "pytorch"
RECIPE = "torch-cpu"

TOLERANCE = 1e-5
"""Of any weight after 20 steps in float32, where ranks add up in another order; 2e-6 was seen."""

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
    """Run shell lines in the image of PyTorch, with the trainers of this checkout."""
    with one_at_a_time(RECIPE):
        toolkit("image", "build", RECIPE, timeout=3600)
    out = tmp_path_factory.mktemp("out")

    def run(lines):
        binds = {
            str(ROOT / "toolkit"): "/opt/toolkit/lib/toolkit:ro",
            str(SCRIPTS): "/test:ro",
            str(ROOT / "docs" / "examples"): "/example:ro",
            str(out): "/out",
        }
        env = {"PYTHONDONTWRITEBYTECODE": "1", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        box = Box(f"toolkit/{RECIPE}:latest", binds=binds, env=env, memory=6 << 30, timeout=600)
        done = run_once(engine, box, ("sh", "-c", lines))
        return done.status, "\n".join(done.lines)

    run.out = out
    return run


def records(inside, name):
    return [json.loads(line) for line in (inside.out / name / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_20_steps_of_two_ranks_come_to_the_weights_of_one_process(inside, optimizer):
    options = f"--optimizer {optimizer} --scaling none --fresh"
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
    header, epoch, result = records(inside, "two")
    assert (header["world_size"], header["strategy"], header["parameters"]) == (2, "ddp", 407050)
    assert "torch" in header["versions"]
    assert epoch["images"] == 640
    assert result["model"] == "model.pt"


def test_a_training_is_resumed_by_another_number_of_ranks(inside):
    options = "--decay constant"
    status, said = inside(
        f"sh /test/ranks.sh 2 residual /out/resumed --epochs 1 {options} && "
        f"sh /test/ranks.sh 1 residual /out/resumed --epochs 2 {options}"
    )
    assert status == 0, said
    kinds = [one["record"] for one in records(inside, "resumed")]
    assert kinds == ["header", "epoch", "resumed", "epoch", "result"]
    assert "resumes from checkpoint 000001-000000000000" in said


def test_a_request_to_stop_writes_a_checkpoint_and_ends_with_75(inside):
    status, said = inside(
        "mkdir -p /out/stopped && : > /out/stopped/stop-asked; "
        "sh /test/ranks.sh 2 residual /out/stopped --epochs 2 --decay constant"
    )
    assert status == 75, said
    assert "stopped on request" in said
    assert list((inside.out / "stopped/checkpoints").iterdir())


def test_a_trainer_for_pytorch_alone_trains_and_names_its_strategy(inside):
    run = "python /example/spirals_torch.py --output /out/spirals --epochs 4"
    status, said = inside(f"{run} --strategy ddp")
    assert status == 0, said
    assert records(inside, "spirals")[-1]["test_accuracy"] > 0.9
    status, said = inside(run)
    assert (status, said.strip()) == (
        2,
        "spirals: --strategy single: spirals has no model in TensorFlow; use --strategy ddp",
    )


def test_a_start_without_the_place_of_the_ranks_is_one_line(inside):
    status, said = inside("WORLD_SIZE=2 RANK=0 python /test/small.py dense --output /out/x --strategy ddp")
    assert status == 2
    assert (
        said.strip() == "small: --strategy ddp: MASTER_ADDR, MASTER_PORT not set; use the launch mode torch"
    )
