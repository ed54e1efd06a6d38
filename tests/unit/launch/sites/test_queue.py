"""Test that toolkit refuses jobs that break the limits of the cluster's partitions and accounts."""

import msgspec

from tests.unit.launch.examples import SPEC
from tests.unit.tables import every_row
from toolkit.launch.sites.queue import queue_faults
from toolkit.model.sitefacts import Association, PartitionFacts, SiteFacts

CPU = PartitionFacts(name="cpu", default=True, nodes=4, cores=32, threads=1, memory_mb=64_000, gpus=0)
GPU = PartitionFacts(name="gpu", nodes=2, cores=32, threads=1, gpus=4, gpu="a100", max_time="12:00:00")
DOWN = PartitionFacts(name="old", nodes=9, cores=64, gpus=8, up=False)
MAY = (Association(account="train", qos=("normal", "long")), Association(account="proj", qos=("normal",)))


def faults(facts=None, **job):
    spec = msgspec.structs.replace(SPEC, **{"partition": None, "account": None, "time": "01:00:00", **job})
    known = SiteFacts(partitions=(CPU, GPU, DOWN), associations=MAY) if facts is None else facts
    return [(one.message, one.fix) for one in queue_faults(spec, known)]


@every_row(
    ("job", "message", "fix"),
    [
        (
            {"partition": "gpus"},
            "--partition gpus: unknown partition (did you mean gpu?)",
            "choose one of these partitions: cpu, gpu, old",
        ),
        ({"gpus_per_node": 2}, "--gpus-per-node 2: partition cpu has no GPUs", "give `--partition` gpu"),
        (
            {"partition": "gpu", "gpus_per_node": 8},
            "--gpus-per-node 8: partition gpu has 4 GPUs per node",
            "request fewer resources",
        ),
        ({"nodes": 5}, "--nodes 5: partition cpu has a limit of 4 nodes", "request fewer resources"),
        (
            {"partition": "gpu", "time": "24:00:00"},
            "--time 24:00:00: partition gpu has a time limit of 12:00:00",
            "give `--partition` cpu",
        ),
        ({"partition": "old"}, "partition old is down", "give `--partition` cpu or gpu"),
        (
            {"account": "trani"},
            "--account trani: not one of your accounts (did you mean train?)",
            "choose one of your accounts: train, proj",
        ),
        (
            {"account": "proj", "qos": "long"},
            "--qos long: your account cannot use this QOS",
            "choose a QOS of your account: normal",
        ),
    ],
)
def test_what_slurm_would_refuse(job, message, fix):
    assert (message, fix) in faults(**job)


@every_row(
    "job",
    [
        {},
        {"partition": "gpu", "gpus_per_node": 4, "gpu": "a100"},
        {"partition": "cpu,gpu"},
        {"account": "TRAIN", "qos": "long"},
        {"qos": "long"},
        {"partition": "nowhere", "sbatch": ("--partition=cpu",)},
    ],
)
def test_what_it_takes(job):
    assert faults(**job) == []


def test_what_is_unknown_forbids_nothing():
    assert faults(SiteFacts(), partition="x", account="y", qos="z", gpus_per_node=8) == []
    unread = SiteFacts(partitions=(PartitionFacts(name="a", default=True),))
    assert faults(unread, gpus_per_node=8) == []


def test_slurm_refuses_gpus_that_no_partition_counts():
    uncounted = SiteFacts(partitions=(PartitionFacts(name="a", default=True, gpus=0),))
    message = "--gpus-per-node 8: Slurm lists no GPUs in any partition of the cluster"
    assert faults(uncounted, gpus_per_node=8) == [(message, "leave out `--gpus-per-node`")]
    assert faults(uncounted) == []


def test_a_cluster_without_a_default_partition_wants_one_named():
    facts = SiteFacts(partitions=(GPU, msgspec.structs.replace(CPU, default=False)))
    assert faults(facts) == [("Slurm has no default partition", "give `--partition` gpu or cpu")]
    assert faults(facts, partition="cpu") == []
