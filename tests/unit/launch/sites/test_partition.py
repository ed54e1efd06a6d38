"""Test that a job gets a partition that can run it, or an error that names the partitions and limits."""

import pytest

from tests.unit.launch.examples import spec
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.launch.sites.partition import choose
from toolkit.launch.sites.share import PARTITION_FIELDS
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


UNSAID = ("partition", *PARTITION_FIELDS)


def told(**changes):
    with pytest.raises(BadInput) as caught:
        choose(spec(**changes), SITE, "mine")
    return caught.value


@every_row(
    ("changes", "message", "fix"),
    [
        (
            {"time": "24:00:01"},
            "--time 24:00:01: {} a time limit of 24:00:00",
            "long; limits of open are unknown",
        ),
        ({"time": "0"}, "--time 0: {} a time limit of 24:00:00", "long; limits of open are unknown"),
        (
            {"time": "121", "partition": "devel"},
            "--time 121: {} a time limit of 02:00:00",
            "batch or gpus or long; limits of open are unknown",
        ),
        ({"nodes": 9}, "--nodes 9: {} a limit of 8 nodes", "gpus; limits of long, open are unknown"),
        (
            {"ranks_per_node": 41, "partition": "gpus"},
            "--ranks-per-node 41: {} 40 cores per node",
            "batch or devel; limits of long, open are unknown",
        ),
        (
            {"ranks_per_node": 4, "cpus_per_rank": 20},
            "--ranks-per-node 4 with --cpus-per-rank 20: {} 48 cores per node",
            "long or open; limits of long, open are unknown",
        ),
        (
            {"cpus_per_rank": 1000},
            "--cpus-per-rank 1000: {} 48 cores per node",
            "long or open; limits of long, open are unknown",
        ),
        (
            {"memory": "100G"},
            "--memory 100G: {} 90000M of memory per node",
            "long; limits of devel, gpus, open are unknown",
        ),
        (
            {"memory_per_cpu": "10G", "cpus_per_rank": 10},
            "--memory-per-cpu 10G for 10 cores: {} 90000M of memory per node",
            "long; limits of devel, gpus, open are unknown",
        ),
        ({"gpus_per_node": 1}, "--gpus-per-node 1: {} no GPUs", "gpus; limits of long, open are unknown"),
        (
            {"gpus_per_node": 4, "nodes": 9},
            "--nodes 9, --gpus-per-node 4: {} a limit of 8 nodes and no GPUs",
            "gpus; limits of long, open are unknown",
        ),
        (
            {"gpu": "a100", "partition": "gpus"},
            "--gpu a100: {} v100 GPUs",
            "batch or devel or long or open; limits of batch, devel, long, open are unknown",
        ),
        (
            {"constraint": "ib&nvme", "partition": "gpus"},
            "--constraint nvme: {} nodes with ib",
            "batch or devel or long or open; limits of batch, devel, long, open are unknown",
        ),
    ],
)
def test_a_named_partition_that_cannot_run_a_job_is_refused_with_those_that_can(changes, message, fix):
    error = told(**changes)
    named = f"partition {changes.get('partition', 'batch')} has"
    assert error.message == f"{message.format(named)} (site mine)"
    assert error.fix == f"give `--partition` {fix}"


def test_an_unknown_partition_is_told_with_the_choices():
    assert told(partition="gpu").message == (
        "--partition gpu: site mine has no such partition (did you mean gpus?); "
        "choices: batch, devel, gpus, long, open"
    )


@every_row("partition", ["gpus", "open", "long,open"])
def test_a_job_that_no_partition_can_run_is_refused_with_the_limits_of_each(partition):
    error = told(gpus_per_node=5, partition=partition)
    first = partition.split(",")[0]
    limits = {
        "gpus": "gpus: 4 GPUs per node; batch, devel: no GPUs; "
        "long, open: an unknown number of GPUs (other partitions have at most 4 per node)",
        "open": "open, long: an unknown number of GPUs (other partitions have at most 4 per node); "
        "batch, devel: no GPUs; "
        "gpus: 4 GPUs per node",
        "long": "long, open: an unknown number of GPUs (other partitions have at most 4 per node); "
        "batch, devel: no GPUs; "
        "gpus: 4 GPUs per node",
    }
    assert error.message == f"--gpus-per-node 5: no partition of site mine can run this job ({limits[first]})"
    assert error.fix == "request fewer resources"


def test_any_number_of_gpus_passes_if_no_partition_is_known_to_have_some():
    site = Site(
        schema="toolkit.site/1", title="x", partitions=(Partition(name="a"), Partition(name="b", gpus=0))
    )
    assert choose(spec(gpus_per_node=64, partition="a"), site, "x").spec.partition == "a"


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
    assert choose(spec(**changes), SITE, "mine").spec == spec(**changes)


def test_a_site_without_partitions_has_no_limits():
    asked = spec(nodes=4000, partition="x")
    assert choose(asked, Site(schema="toolkit.site/1", title="x"), "x", UNSAID) == (asked, None, "")


def chosen(site=SITE, **changes):
    unsaid = [field for field in UNSAID if field not in changes]
    choice = choose(spec(**{"partition": site.defaults.partition or None, **changes}), site, "mine", unsaid)
    return choice.spec.partition, choice.reason


@every_row(
    ("changes", "partition", "why"),
    [
        ({}, "batch", ""),
        ({"nodes": 8, "time": "24:00:00", "ranks_per_node": 48}, "batch", ""),
        ({"gpus_per_node": 0}, "batch", ""),
        ({"gpus_per_node": 4}, "gpus", "the default partition batch has no GPUs"),
        ({"gpus_per_node": 4, "gpu": "v100"}, "gpus", "the default partition batch has no GPUs"),
        ({"nodes": 9}, "gpus", "the default partition batch has a limit of 8 nodes"),
        ({"time": "2-00"}, "long", "the default partition batch has a time limit of 24:00:00"),
        ({"memory": "100G"}, "long", "the default partition batch has 90000M of memory per node"),
        (
            {"memory": "100G", "nodes": 9},
            "gpus",
            (
                "the default partition batch has a limit of 8 nodes and 90000M of memory per node; "
                "the profile does not state the limits of gpus for memory"
            ),
        ),
        (
            {"gpus_per_node": 4, "gpu": "a100"},
            "long",
            (
                "the default partition batch has no GPUs; "
                "the profile does not state the limits of long for GPUs and GPU type"
            ),
        ),
        (
            {"ranks_per_node": 49},
            "long",
            (
                "the default partition batch has 48 cores per node; "
                "the profile does not state the limits of long for cores"
            ),
        ),
        ({"partition": "open", "gpus_per_node": 4}, "open", ""),
        ({"sbatch": ("-p gpus",), "gpus_per_node": 4}, "batch", ""),
        ({"sbatch": ("--partition=gpus",), "gpus_per_node": 4}, "batch", ""),
    ],
)
def test_an_unnamed_partition_is_the_default_or_the_first_that_can_run_the_job(changes, partition, why):
    assert chosen(**changes) == (partition, why)


def test_an_option_of_sbatch_names_the_partition_that_is_judged():
    with pytest.raises(BadInput, match="--gpus-per-node 1: partition devel has no GPUs"):
        choose(spec(sbatch=("-p devel",), gpus_per_node=1), SITE, "mine", UNSAID)


def site_of(*partitions, **defaults):
    return Site(schema="toolkit.site/1", title="x", defaults=Defaults(**defaults), partitions=partitions)


def test_a_partition_with_known_gpus_comes_before_a_default_whose_gpus_are_unknown():
    site = site_of(Partition(name="a"), Partition(name="b", gpus=4), partition="a")
    assert chosen(site, gpus_per_node=4) == (
        "b",
        "the profile does not state the limits of the default partition a for GPUs",
    )
    assert chosen(site, gpus_per_node=0) == ("a", "")
    assert chosen(site) == ("a", "")


def test_the_default_partition_of_slurm_is_not_written_down():
    site = site_of(Partition(name="a", gpus=0, default=True), Partition(name="b", gpus=4))
    assert chosen(site) == (None, "")
    assert chosen(site, gpus_per_node=1) == ("b", "the default partition a has no GPUs")


def test_a_site_without_a_default_partition_gets_one_if_gpus_are_asked_for():
    site = site_of(Partition(name="a", gpus=0), Partition(name="b", gpus=4))
    assert chosen(site) == (None, "")
    assert chosen(site, gpus_per_node=1) == ("b", "the profile names no default partition")
    with pytest.raises(BadInput, match=r"can run this job \(a: no GPUs; b: 4 GPUs per node\)"):
        chosen(site, gpus_per_node=5)


def fitted(unsaid=UNSAID, **changes):
    defaults = Defaults(partition="batch", cpus_per_rank=24, memory="80G", constraint="skylake")
    site = Site(
        schema="toolkit.site/1",
        title="x",
        defaults=defaults,
        partitions=(
            Partition(name="batch", cores=48, memory_mb=90000, gpus=0, features=("skylake",)),
            Partition(name="gpus", cores=20, memory_mb=60000, gpus=4, features=("volta",)),
        ),
    )
    asked = {"partition": "batch", "cpus_per_rank": 24, "memory": "80G", "constraint": "skylake", **changes}
    found = choose(spec(**asked), site, "x", unsaid).spec
    return found.partition, found.cpus_per_rank, found.memory, found.constraint


def test_defaults_of_the_profile_follow_the_partition():
    assert fitted() == ("batch", 24, "80G", "skylake")
    assert fitted(ranks_per_node=4) == ("batch", 12, "80G", "skylake")
    assert fitted(gpus_per_node=4) == ("gpus", 20, "60000M", "")
    assert fitted(gpus_per_node=2, ranks_per_node=2) == ("gpus", 5, "60000M", "")
    assert fitted(partition="gpus", unsaid=PARTITION_FIELDS) == ("gpus", 20, "60000M", "")
    assert fitted(memory_per_cpu="10G", memory="") == ("batch", 8, "", "skylake")


def test_what_a_person_asks_for_stays():
    assert fitted(gpus_per_node=4, cpus_per_rank=5, unsaid=("partition", "memory", "constraint")) == (
        "gpus", 5, "60000M", "",
    )  # fmt: skip
    with pytest.raises(BadInput, match="gpus: 20 cores per node"):
        fitted(gpus_per_node=4, unsaid=("partition", "memory", "constraint"))
    with pytest.raises(BadInput, match="gpus: 60000M of memory per node"):
        fitted(gpus_per_node=4, unsaid=("partition", "cpus_per_rank", "constraint"))
    with pytest.raises(BadInput, match="gpus: nodes with volta"):
        fitted(gpus_per_node=4, unsaid=("partition", "cpus_per_rank", "memory"))
