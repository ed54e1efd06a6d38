"""What a site cannot give is refused before anything is submitted, with the limit and who would take it."""

import pytest

from tests.unit.launch.examples import spec
from tests.unit.tables import every_row
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
        Partition(name="long", max_time="UNLIMITED", memory_mb=200000),
        Partition(name="open"),
    ),
)


def told(**changes):
    with pytest.raises(BadInput) as caught:
        check_limits(spec(**changes), SITE, "mine")
    return caught.value


@every_row(
    ("changes", "message", "fix"),
    [
        ({"time": "24:00:01"}, "--time 24:00:01: at most 24:00:00", "long"),
        ({"time": "1-01"}, "--time 1-01: at most 24:00:00", "long"),
        ({"time": "UNLIMITED"}, "--time UNLIMITED: at most 24:00:00", "long"),
        ({"time": "0"}, "--time 0: at most 24:00:00", "long"),
        ({"time": "121", "partition": "devel"}, "--time 121: at most 02:00:00", "batch or gpus or long"),
        ({"nodes": 9}, "--nodes 9: at most 8 nodes", "gpus"),
        ({"nodes": 40, "partition": "devel"}, "--nodes 40: at most 4 nodes", "gpus"),
        (
            {"ranks_per_node": 41, "partition": "gpus"},
            "--ranks-per-node 41: a node has 40 cores",
            "batch or devel",
        ),
        (
            {"ranks_per_node": 4, "cpus_per_rank": 25},
            "--ranks-per-node 4 with --cpus-per-rank 25: a node has 48 cores",
            None,
        ),
        (
            {"ranks_per_node": 4, "cpus_per_rank": 20},
            "--ranks-per-node 4 with --cpus-per-rank 20: a node has 48 cores",
            None,
        ),
        ({"nodes": 50, "partition": "gpus"}, "--nodes 50: at most 46 nodes", None),
        ({"ranks_per_node": 97}, "--ranks-per-node 97: a node has 48 cores", None),
        ({"cpus_per_rank": 1000}, "--ranks-per-node 1 with --cpus-per-rank 1000: a node has 48 cores", None),
        ({"memory": "100G"}, "--memory 100G: a node has 90000M for jobs", "long"),
        (
            {"memory_per_cpu": "10G", "cpus_per_rank": 10},
            "--memory-per-cpu 10G: 10 cores of a node would take more than the 90000M",
            "long",
        ),
        ({"gpus_per_node": 1}, "--gpus-per-node 1: its nodes have none", "gpus"),
        (
            {"gpu": "a100", "partition": "gpus"},
            "--gpu a100: its nodes have v100",
            None,
        ),
        ({"constraint": "ib&nvme", "partition": "gpus"}, "--constraint nvme: its nodes have ib", None),
    ],
)
def test_more_than_there_is_is_refused_with_the_limit_and_who_would_take_it(changes, message, fix):
    error = told(**changes)
    assert error.message.startswith(message)
    assert "site mine, partition" in error.message
    assert error.fix == (f"--partition {fix}" if fix else "ask for less: no partition is known to take it")


def test_an_unknown_partition_is_told_with_the_choices():
    assert told(partition="gpu").message == (
        "--partition gpu: site mine has no such partition, did you mean gpus?; "
        "choices: batch, devel, gpus, long, open"
    )


def test_nobody_is_sent_for_gpus_to_where_none_are_known():
    error = told(gpus_per_node=5, partition="gpus")
    assert error.message.startswith("--gpus-per-node 5: a node has 4")
    assert error.fix == "ask for less: no partition is known to take it"


@pytest.mark.parametrize("partition", ["open", "long,open"])
def test_more_gpus_than_any_partition_is_known_to_have_are_refused_everywhere(partition):
    error = told(gpus_per_node=5, partition=partition)
    assert error.message == "--gpus-per-node 5: no partition is known to have more than 4 (site mine)"


def test_who_has_the_most_gpus_is_told():
    assert told(gpus_per_node=5, partition="open").fix == "--gpus-per-node 4 --partition gpus"


def test_where_no_partition_is_known_to_have_gpus_any_number_passes():
    site = Site(
        schema="toolkit.site/1", title="x", partitions=(Partition(name="a"), Partition(name="b", gpus=0))
    )
    check_limits(spec(gpus_per_node=64, partition="a"), site, "x")


def test_where_nobody_takes_it_less_has_to_be_asked_for():
    site = Site(
        schema="toolkit.site/1", title="x", partitions=(Partition(name="a", default=True, max_nodes=1),)
    )
    with pytest.raises(BadInput) as caught:
        check_limits(spec(nodes=2), site, "x")
    assert caught.value.fix == "ask for less: no partition is known to take it"


@every_row(
    "changes",
    [
        {"time": "24:00:00", "nodes": 8, "ranks_per_node": 96},
        {"ranks_per_node": 4, "cpus_per_rank": 12},
        {"ranks_per_node": 4, "cpus_per_rank": 20, "sbatch": ("--hint=multithread",)},
        {"ranks_per_node": 2, "cpus_per_rank": 40, "partition": "batch,open"},
        {"partition": "open", "nodes": 4000, "time": "9-00", "gpus_per_node": 4, "memory": "9T"},
        {"partition": "gpus", "gpus_per_node": 4, "gpu": "v100", "constraint": "ib"},
        {"partition": "gpus", "constraint": "[a*2&b*2]"},
        {"partition": "batch,devel", "time": "01:00:00"},
    ],
)
def test_what_fits_and_what_is_not_known_passes(changes):
    check_limits(spec(**changes), SITE, "mine")


def test_a_site_without_partitions_has_no_limits():
    check_limits(spec(nodes=4000, partition="x"), Site(schema="toolkit.site/1", title="x"), "x")
