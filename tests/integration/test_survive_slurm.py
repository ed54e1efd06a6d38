"""A training on two nodes that Slurm asks to stop: the next job takes it to the same end."""

import json
import re
import time

import pytest

from tests.integration.program import toolkit
from tests.integration.test_launch import last_record, on_login

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def launch(cluster, training_sif):
    """Launch MNIST for ten epochs of two ranks, and return the record once two of them are done."""
    toolkit("data", "get", "mnist")

    def go(*options):
        words = ["--cluster", cluster.name, "--image", str(training_sif), "--no-follow", "--nodes", "2"]
        toolkit("launch", "mnist", *words, *options, "--", "--epochs", "20", timeout=300)
        record = last_record()
        until(lambda: len(lines(cluster, record, "epoch")) >= 2)
        return record

    return go


def until(ready, seconds=150):
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "nothing came of it in time"
        time.sleep(0.5)


def lines(cluster, record, kind):
    text = on_login(cluster, f"cat {record['spec']['directory']}/metrics.jsonl 2> /dev/null")
    whole = text[: text.rfind("\n") + 1].splitlines()
    return [line for line in map(json.loads, whole) if line["record"] == kind]


def output(cluster, record):
    return on_login(cluster, f"cat {record['spec']['directory']}/output.log")


def whole(cluster, record):
    """Check that the training is what it would have been without the stop."""
    epochs = lines(cluster, record, "epoch")
    assert [line["epoch"] for line in epochs] == list(range(1, 11))
    assert {line["images"] for line in epochs} == {120_000}
    (result,) = lines(cluster, record, "result")
    assert result["images"] == 1_200_000
    assert result["test_accuracy"] >= 0.975


def test_two_ranks_stop_before_the_time_limit_and_the_next_job_goes_on(cluster, launch):
    record = launch("--mode", "srun-pmix", "--chain", "1", "--warning", "60")
    on_login(cluster, f"scancel --signal=USR1 --batch {record['id']}")
    until(lambda: lines(cluster, record, "result"))
    said = output(cluster, record)
    assert said.count("mnist: stopped as it was asked to") == 1
    assert re.search(r"stopped with a checkpoint; job \d+ goes on", said)
    assert said.count("mnist: goes on from checkpoint") == 1
    assert "Traceback" not in said
    whole(cluster, record)
