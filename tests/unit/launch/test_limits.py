"""What a site cannot give is refused before anything is submitted, with the limit and who would take it."""

import pytest

from tests.unit.launch.examples import spec
from toolkit.errors import BadInput
from toolkit.launch.limits import check_limits
from toolkit.model.site import Defaults, Partition, Site

SITE = Site(
    schema="toolkit.site/1",
    title="A cluster",
    defaults=Defaults(partition="batch"),
    partitions=(
        Partition(
            name="batch", max_time="24:00:00", max_nodes=8, cores=48, threads=2, memory_mb=90000, gpus=0
        ),
        Partition(name="devel", max_time="02:00:00", max_nodes=4, cores=48, gpus=0),
        Partition(
            name="gpus", max_time="1-00:00:00", nodes=46, cores=40, gpus=4, gpu="v100", features=("ib",)
        ),
        Partition(name="open"),
    ),
)


def told(**changes):
    with pytest.raises(BadInput) as caught:
        check_limits(spec(**changes), SITE, "mine")
    return caught.value


@pytest.mark.parametrize(
    ("changes", "message", "fix"),
    [
        ({"time": "24:00:01"}, "--time 24:00:01: at most 24:00:00", "open"),
        ({"time": "1-01"}, "--time 1-01: at most 24:00:00", "open"),
        ({"time": "UNLIMITED"}, "--time UNLIMITED: at most 24:00:00", "open"),
        ({"time": "121", "partition": "devel"}, "--time 121: at most 02:00:00", "batch or gpus or open"),
        ({"nodes": 9}, "--nodes 9: at most 8 nodes", "gpus or open"),
        ({"nodes": 50, "partition": "gpus"}, "--nodes 50: at most 46 nodes", "open"),
        ({"ranks_per_node": 97}, "--ranks-per-node 97: a node has 48 cores", "open"),
        (
            {"ranks_per_node": 4, "cpus_per_rank": 25},
            "--ranks-per-node 4 with --cpus-per-rank 25: a node has 48 cores",
            "open",
        ),
        (
            {"ranks_per_node": 4, "cpus_per_rank": 20},
            "--ranks-per-node 4 with --cpus-per-rank 20: a node has 48 cores",
            "open",
        ),
        ({"memory": "100G"}, "--memory 100G: a node has 90000M for jobs", "devel or gpus or open"),
        (
            {"memory_per_cpu": "10G", "cpus_per_rank": 10},
            "--memory-per-cpu 10G: 10 cores of a node would take more than the 90000M",
            "devel or gpus or open",
        ),
        ({"gpus_per_node": 1}, "--gpus-per-node 1: its nodes have none", "gpus"),
        (
            {"gpu": "a100", "partition": "gpus"},
            "--gpu a100: its nodes have v100",
            "batch or devel or open",
        ),
        ({"constraint": "ib&nvme", "partition": "gpus"}, "--constraint nvme: its nodes have ib", "batch"),
    ],
)
def test_more_than_there_is_is_refused_with_the_limit_and_who_would_take_it(changes, message, fix):
    error = told(**changes)
    assert error.message.startswith(message)
    assert "site mine, partition" in error.message
    assert f"--partition {fix}" in error.fix


def test_an_unknown_partition_is_told_with_the_choices():
    assert told(partition="gpu").message == (
        "--partition gpu: site mine has no such partition; choices: batch, devel, gpus, open"
    )


def test_nobody_is_sent_for_gpus_to_where_none_are_known():
    error = told(gpus_per_node=5, partition="gpus")
    assert error.message.startswith("--gpus-per-node 5: a node has 4")
    assert error.fix == "ask for less: no partition takes it"


def test_where_nobody_takes_it_less_has_to_be_asked_for():
    site = Site(
        schema="toolkit.site/1", title="x", partitions=(Partition(name="a", default=True, max_nodes=1),)
    )
    with pytest.raises(BadInput) as caught:
        check_limits(spec(nodes=2), site, "x")
    assert caught.value.fix == "ask for less: no partition takes it"


@pytest.mark.parametrize(
    "changes",
    [
        {"time": "24:00:00", "nodes": 8, "ranks_per_node": 96},
        {"ranks_per_node": 4, "cpus_per_rank": 12},
        {"ranks_per_node": 4, "cpus_per_rank": 20, "sbatch": ("--hint=multithread",)},
        {"ranks_per_node": 2, "cpus_per_rank": 40, "partition": "batch,open"},
        {"partition": "open", "nodes": 4000, "time": "9-00", "gpus_per_node": 64, "memory": "9T"},
        {"partition": "gpus", "gpus_per_node": 4, "gpu": "v100", "constraint": "ib"},
        {"partition": "gpus", "constraint": "[a*2&b*2]"},
        {"partition": "batch,devel", "time": "01:00:00"},
    ],
)
def test_what_fits_and_what_is_not_known_passes(changes):
    check_limits(spec(**changes), SITE, "mine")


def test_a_site_without_partitions_has_no_limits():
    check_limits(spec(nodes=4000, partition="x"), Site(schema="toolkit.site/1", title="x"), "x")
