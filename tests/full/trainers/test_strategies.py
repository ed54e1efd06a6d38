"""Test every strategy in one container: the same weights as one process, and the right exit status."""

import json
import math
import re
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "strategies"

BUSY = 1200.0
"""Limit in seconds for many starts of up to four ranks, on a machine that has other work, too."""

TOLERANCE = 1e-6
"""Largest allowed difference of a weight: another order of additions gave 2e-7 in 20 steps in float32."""

PIPELINES = """
import contextlib, io
from toolkit.trainers import pipeline
devices = pipeline.two_devices()
pipeline.two_devices = lambda: devices
for name, *words in (
    ("compare", "--steps", "20", "--compare"),
    ("pieces", "--steps", "20", "--micro-batches", "2"),
    ("once", "--steps", "1"),
    ("still", "--steps", "20", "--learning-rate", "1e-6"),
    ("small", "--steps", "1", "--batch-size", "8"),
):
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert pipeline.main(["--data", "/data", *words]) == 0
    print(*(f"{name}: {line}" for line in told.getvalue().splitlines()), sep="\\n", flush=True)
"""


def results(done):
    told = [json.loads(line.removeprefix("RESULT ")) for line in done.lines if line.startswith("RESULT ")]
    return {one["name"]: one for one in told}


@pytest.fixture(scope="module")
def trained(inside, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained")
    done = inside("sh", "/test/equal.sh", binds={SCRIPTS: "/test:ro", out: "/out"}, timeout=BUSY)
    found = results(done)
    assert "single" in found, done.lines
    found["said"] = "\n".join(done.lines)
    return found


@pytest.mark.parametrize(
    "name",
    [
        *(f"{name}-{n}" for name in ("horovod", "multiworker", "mpi-aggregate", "mirrored") for n in (2, 4)),
        "hybrid-4",
        "ps-sync-4",
    ],
)
def test_20_steps_come_to_the_weights_of_one_process(trained, name):
    assert name in trained, trained["said"]
    one = trained[name]
    assert one["apart"] < TOLERANCE
    assert one["images"] == 640
    assert one["header"]["global_batch_size"] == 32
    assert math.isclose(one["header"]["learning_rate"], 0.05)
    assert math.isclose(one["loss"], trained["single"]["loss"], rel_tol=1e-5)


@pytest.mark.parametrize(
    ("name", "size", "devices"),
    [("multiworker-4", 4, 1), ("mpi-aggregate-2", 2, 1), ("mirrored-4", 1, 4), ("hybrid-4", 2, 2)],
)
def test_the_metrics_tell_ranks_and_devices(trained, name, size, devices):
    header = trained[name]["header"]
    assert (header["world_size"], header["devices"], header["nodes"]) == (size, devices, 1)


def test_late_gradients_train_all_the_same_and_come_to_other_weights(trained):
    assert "delayed-2" in trained, trained["said"]
    assert trained["delayed-2"]["loss"] < math.log(4)
    assert trained["delayed-2"]["apart"] > 100 * TOLERANCE


@pytest.mark.parametrize("name", ["normal-mirrored", "normal-multiworker", "normal-ps"])
def test_moving_averages_of_several_devices_are_saved_and_scored(trained, name):
    assert name in trained, trained["said"]
    assert trained[name]["accuracy"] > 0.9


def test_the_plugins_calls_aggregate_for_several_teams(inside, tmp_path):
    words = ("mpirun", "--bind-to", "none", "-n", "2", "python", "/test/teams.py")
    done = inside(*words, binds={SCRIPTS: "/test:ro", tmp_path: "/out"})
    assert done.ok, done.lines
    assert "team 0: 2 ranks, the first 6 of 6 steps synchronous" in done.lines
    assert [line.split(",")[0] for line in done.lines if " ms a step" in line] == [
        "team 0: step 3",
        "team 0: step 6",
    ]
    assert "of 3 arrays, these differ between ranks: 0, 1, 2" in done.lines
    assert list(done.lines[-3:]) == [
        "DONE 2 [0.5, 1.0] 3 0 [2.0, [1], [1.5, 1.0]] /out/teams/rank-0000",
        "team 1 is not configured; call config_team first",
        "the gradients have 2000000 values, but init allows only 1050008",
    ]
    assert (tmp_path / "teams" / "rank-0001" / "mine").read_text() == "1"


@pytest.fixture(scope="module")
def pipelines(inside, few):
    """Return the number of micro-batches and the losses of each run, and the lines that compare the runs."""
    done = inside("python", "-c", PIPELINES, binds={few: "/data:ro"})
    assert done.ok, done.lines
    form = re.compile(
        r"(\w+): (\d) devices?, (\d) micro-batch(?:es)?: loss ([0-9.]+) in the first step, "
        r"([0-9.]+) in the last step, [0-9,]+ images/s"
    )
    found = [form.fullmatch(line).groups() for line in done.lines if " micro-batch" in line]
    told = {f"{name}-{devices}": (int(pieces), float(a), float(b)) for name, devices, pieces, a, b in found}
    return told, [line for line in done.lines if "losses differ" in line]


def test_a_network_on_two_devices_has_the_loss_of_one(pipelines):
    found, (apart,) = pipelines
    assert found["compare-2"] == pytest.approx((4, *found["compare-1"][1:]), abs=1e-5)
    assert found["compare-1"][0] == 1
    assert float(apart.removeprefix("compare: the losses differ by at most ")) < 1e-5


def test_pieces_steps_batch_and_rate_of_the_pipeline_are_those_that_were_asked_for(pipelines):
    found, _ = pipelines
    _, first, last = found["compare-2"]
    assert found["pieces-2"] == pytest.approx((2, first, last), abs=1e-5)
    assert found["once-2"][1:] == pytest.approx((first, first), abs=1e-6)
    assert found["still-2"][1] == pytest.approx(first, abs=1e-6)
    assert found["still-2"][2] > last + 0.3
    assert abs(found["small-2"][1] - first) > 1e-3


@pytest.fixture(scope="module")
def ended(inside, tmp_path_factory):
    out = tmp_path_factory.mktemp("ended")
    names = (
        "multiworker-killed",
        "multiworker-stopped",
        "multiworker-failed",
        "ps-killed",
        "ps-stopped",
        "ps-failed",
        "mirrored-started-twice",
        "ps-of-two",
        "ps-of-servers",
        "multiworker-without-peers",
        "option-of-another",
    )
    words = ("python", "/test/ends.py", *names)
    done = inside(*words, binds={SCRIPTS: "/test:ro", out: "/out"}, timeout=BUSY)
    found = results(done)
    assert set(found) == set(names), done.lines
    return found


@pytest.mark.parametrize(("name", "killed"), [("multiworker-killed", 1), ("ps-killed", 2)])
def test_a_rank_that_is_killed_takes_the_others_down_in_seconds(ended, name, killed):
    one = ended[name]
    assert all(one["codes"])
    assert one["seconds"] < 10
    said = [line for lines in one["told"] for line in lines.splitlines() if line.startswith("rank ")]
    assert len(said) == 1
    assert said[0].startswith(f"rank {killed} on ")
    assert "is lost" in said[0]


@pytest.mark.parametrize("name", ["multiworker-failed", "ps-failed"])
def test_a_rank_that_fails_shows_its_traceback_once_and_ends_all(ended, name):
    one = ended[name]
    assert all(code == 1 for code in one["codes"])
    said = "".join(one["told"])
    assert said.count("Traceback") == 1, said
    assert "RuntimeError: a fault of this rank" in said
    assert "is lost" not in said


@pytest.mark.parametrize("name", ["multiworker-stopped", "ps-stopped"])
def test_all_ranks_end_with_the_status_of_a_stop(ended, name):
    assert set(ended[name]["codes"]) == {75}
    assert sum("stopped on request" in said for said in ended[name]["told"]) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mirrored-started-twice", "2 processes were started, but --strategy mirrored trains in one"),
        (
            "ps-of-two",
            "--strategy ps needs at least 3 ranks (a coordinator, a server and a worker); the job has 2",
        ),
        ("ps-of-servers", "and at least one rank must be a worker; use at most 1"),
        ("multiworker-without-peers", "--strategy multiworker: cannot find the other ranks"),
        ("option-of-another", "--devices: only for --strategy mirrored or hybrid, not for single"),
    ],
)
def test_a_wrong_start_is_one_line_and_status_2(ended, name, said):
    assert set(ended[name]["codes"]) == {2}
    lines = [line for told in ended[name]["told"] for line in told.splitlines()]
    assert len(lines) == 1, lines
    assert said in lines[0]
