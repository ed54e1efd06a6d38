"""Test the MPI trials of `toolkit doctor --live`: the predicted outcome equals the real outcome."""

import json

import pytest

from tests.services.program import toolkit
from toolkit.run.command import Command
from toolkit.run.docker.nodes import open_nodes


def live(image, cluster, *words, timeout=300):
    done = toolkit(
        "doctor",
        str(image),
        "--cluster",
        cluster.name,
        "--live",
        "--json",
        *words,
        timeout=timeout,
        ok=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_two_ranks_of_a_node_send_to_each_other_too(cluster, training_sif):
    status, told = live(training_sif, cluster, "--ranks-per-node", "2")
    (trial,) = told["trials"]
    assert trial["seen"]["sizes"] == [4] * 4
    assert trial["seen"]["sums"] == [True] * 4
    assert {m["between"] for m in trial["seen"]["messages"]} == {"nodes", "node"}
    # The trial also sends large messages, which hang unless the ranks of a node share a namespace.
    assert (trial["observed"], trial["predicted"], trial["agrees"], status) == ("ok", "ok", True, 0)


def test_modes_that_fail_fail_as_predicted_and_are_explained(cluster, training_sif):
    status, told = live(training_sif, cluster, "--mode", "srun-pmi2", "--mode", "mpirun-host")
    refused, right = told["trials"]
    assert status == 1
    assert (refused["mode"], refused["observed"], refused["agrees"]) == ("srun-pmi2", "singletons", True)
    assert refused["findings"][0]["id"] == "image-lacks-pmi2"
    assert (right["mode"], right["observed"], right["agrees"]) == ("mpirun-host", "ok", True)


@pytest.fixture
def without_time_zone(cluster):
    """Remove /etc/localtime, which Apptainer mounts by default, from the nodes as on a minimal system."""

    def move(source, target):
        for node in ("node1", "node2"):
            done = machines.run(f"toolkit-{cluster.name}-{node}", Command.of("mv", source, target))
            assert done.ok, done.errors

    with open_nodes() as machines:
        move("/etc/localtime", "/etc/localtime.away")
        yield
        move("/etc/localtime.away", "/etc/localtime")


def test_what_the_runtime_cannot_bind_is_left_out(cluster, training_sif, without_time_zone):
    status, told = live(training_sif, cluster, "--mode", "srun-pmix", "--mode", "mpirun-host")
    assert [trial["observed"] for trial in told["trials"]] == ["ok", "ok"]
    assert status == 0


def test_the_page_for_a_person(cluster, training_sif):
    done = toolkit("doctor", str(training_sif), "--cluster", cluster.name, "--live", timeout=300)
    assert "observed       ok: 2 of 2 ranks on node" in done.stdout
    assert "between nodes" in done.stdout
    assert "toolkit jobs logs live-srun-pmix-" in done.stdout
