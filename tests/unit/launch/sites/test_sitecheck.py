"""Test the comparison of a site profile with the present state of its cluster."""

import msgspec

from tests.unit.tables import every_row
from toolkit.knowledge import sites
from toolkit.launch.sites.sitecheck import points, words
from toolkit.model.facts import ContainerRuntime, HostFacts, SlurmFacts
from toolkit.model.sitefacts import Association, PartitionFacts, SiteFacts

SITE = sites.parse(
    """
schema = "toolkit.site/1"
title = "A"
modules = ["gcc/12"]
directory = "$WORK/toolkit"
scratch = "/local"
network = "ib0"
[container]
command = "apptainer"
modules = ["apptainer/1.3"]
binds = ["/work:/work:ro", "$STORE"]
[launch]
mpi = "pmix"
[defaults]
partition = "gpu"
account = "p1"
qos = "normal"
time = "01:00:00"
[[partitions]]
name = "gpu"
default = true
max_time = "1-00:00:00"
max_nodes = 4
nodes = 8
cores = 40
threads = 2
memory_mb = 180000
gpus = 4
gpu = "v100"
features = ["volta"]
""",
    "a.toml",
)
PART = PartitionFacts(
    name="gpu", default=True, nodes=8, cores=40, threads=2, memory_mb=180000, gpus=4, gpu="v100",
    max_time="24:00:00", max_nodes=4, features=("volta", "opa"),
)  # fmt: skip
HOST = HostFacts(
    place="login",
    architecture="x86_64",
    slurm=SlurmFacts(version="24.05", mpi_types=("none", "pmix")),
    interfaces=("ib0", "eth0"),
    compute_nodes=("n1",),
)
FACTS = SiteFacts(
    partitions=(PART,),
    associations=(Association(account="p1", qos=("normal",)),),
    loaded=("", ""),
    commands=("", "", "/opt/bin/apptainer", "/usr/bin/srun"),
    there=(True, True, False, True),
    there_nodes=(True, False, True, False),
)


def states(host=HOST, facts=FACTS, site=SITE, **fields):
    found = points(site, host, msgspec.structs.replace(facts, **fields))
    return {point.field: point for point in found if point.state != "holds"}


def part(**fields):
    return {"partitions": (msgspec.structs.replace(PART, **fields),)}


def test_what_is_looked_for_is_what_the_profile_names():
    asked = words(SITE)
    assert asked.modules == ("gcc/12", "apptainer/1.3")
    assert asked.commands == ("apptainer", "srun")
    assert asked.folders == ("/work", "$STORE", "/local", "$WORK")


def test_a_profile_that_holds_has_every_point_judged():
    found = list(points(SITE, HOST, FACTS))
    assert states() == {}
    fields = {point.field for point in found}
    wanted = (
        "scheduler architecture modules[0] container.modules[0] container.binds[1] scratch directory network"
    )
    wanted += " container.command launch.mpi defaults.account defaults.qos defaults.time partitions[0].name"
    wanted += " partitions[0].max_time partitions[0].features[0] partitions[0].gpus partitions[0].gpu"
    assert set(wanted.split()) <= fields


@every_row(
    ("fields", "field", "text"),
    [
        ({"partitions": ()}, "partitions[0].name", "gpu: unknown partition; partitions: "),
        (part(up=False), "partitions[0].name", "gpu: the partition is down"),
        (
            part(max_time="12:00:00"),
            "partitions[0].max_time",
            "gpu: max time 1-00:00:00; the cluster has 12:00:00",
        ),
        (part(max_time="UNLIMITED"), "partitions[0].max_time", "the cluster has UNLIMITED"),
        (part(max_time="00:30:00"), "defaults.time", "01:00:00: gpu allows at most 00:30:00"),
        (part(max_nodes=None), "partitions[0].max_nodes", "gpu: max nodes 4; the cluster has no limit"),
        (part(nodes=9), "partitions[0].nodes", "gpu: nodes 8; the cluster has 9"),
        (part(cores=64), "partitions[0].cores", "gpu: cores 40; the cluster has 64"),
        (part(gpus=0, gpu=""), "partitions[0].gpus", "gpu: gpus 4; the cluster has 0"),
        (part(gpu="a100"), "partitions[0].gpu", "gpu: gpu v100; the cluster has a100"),
        (part(features=("opa",)), "partitions[0].features[0]", "gpu: no node has volta"),
        ({"loaded": ("", "unknown module")}, "container.modules[0]", "apptainer/1.3: unknown module"),
        ({"commands": ("", "", "", "/usr/bin/srun")}, "container.command", "apptainer: not found on PATH"),
        (
            {"there_nodes": (False, False, True, False)},
            "container.binds[0]",
            "does not exist on compute nodes",
        ),
        ({"there_nodes": (True, False, False, False)}, "scratch", "/local: does not exist on compute nodes"),
        ({"there": (True, True, False, False)}, "directory", "$WORK: does not exist on the login host"),
        ({"there": (True, False, False, True)}, "container.binds[1]", "$STORE: does not exist"),
        (
            {"associations": (Association(account="p2"),)},
            "defaults.account",
            "p1: Slurm lists only p2 for you",
        ),
        (
            {"associations": (Association(account="p1", qos=("x",)),)},
            "defaults.qos",
            "normal: Slurm lists only x for you",
        ),
    ],
)
def test_what_no_longer_holds_is_named_with_what_is_so(fields, field, text):
    found = states(**fields)
    assert found[field].state == "differs"
    assert text in found[field].text


@every_row(
    ("host", "field", "text"),
    [
        ({"architecture": "aarch64"}, "architecture", "x86_64: the cluster has aarch64"),
        ({"interfaces": ("eth0",)}, "network", "ib0: compute nodes have eth0"),
        ({"slurm": SlurmFacts(version="24.05", mpi_types=("none",))}, "launch.mpi", "pmix: srun offers none"),
        ({"slurm": None, "absent": {"slurm": "sinfo: not found"}}, "scheduler", "sinfo: not found"),
    ],
)
def test_a_machine_that_changed_is_told(host, field, text):
    found = states(msgspec.structs.replace(HOST, **host))
    assert found[field].state == "differs"
    assert text in found[field].text


def test_a_partition_with_gpus_of_several_types_tells_none():
    assert states(**part(gpu=""))["partitions[0].gpu"].state == "undecided"


@every_row(("gpus", "state"), [(0, "holds"), (4, "differs"), (None, "undecided")])
def test_a_profile_may_state_that_a_partition_has_no_gpus(gpus, state):
    without = msgspec.structs.replace(SITE.partitions[0], gpus=0, gpu="")
    site = msgspec.structs.replace(SITE, partitions=(without,))
    facts = SiteFacts(partitions=(msgspec.structs.replace(PART, gpus=gpus),))
    assert {p.field: p.state for p in points(site, HOST, facts)}["partitions[0].gpus"] == state


def test_what_nobody_knows_is_undecided_and_never_a_fault():
    nothing = {p.field: p.state for p in points(SITE, HostFacts(place="x"), SiteFacts())}
    assert set(nothing.values()) == {"undecided"}
    assert {"scheduler", "modules[0]", "scratch", "network", "container.command", "launch.mpi"} <= set(
        nothing
    )
    assert {"defaults.account", "defaults.qos", "partitions[0].name"} <= set(nothing)


def test_a_job_may_have_a_variable_that_the_login_shell_has_not():
    site = msgspec.structs.replace(SITE, scratch="$TMPDIR")
    assert states(site=site)["scratch"].state == "undecided"


def test_a_runtime_that_only_compute_nodes_have_is_found_there():
    host = msgspec.structs.replace(
        HOST, runtime=ContainerRuntime(name="apptainer", version="1.3", path="/usr/bin/apptainer")
    )
    assert "container.command" not in states(host, commands=("", "", "", ""))
    assert "container.command" not in states(host, commands=None)


def test_limits_that_an_older_probe_does_not_tell_are_undecided():
    found = states(**part(max_time="", max_nodes=None, cores=None, cpus=None, features=None))
    assert {p.state for p in found.values()} == {"undecided"}
    assert {"partitions[0].max_time", "partitions[0].max_nodes", "partitions[0].features[0]"} <= set(found)


def test_every_shipped_profile_can_be_held_against_any_facts():
    for name in sites.names():
        site = sites.site(name)
        for host, facts in ((HOST, FACTS), (HostFacts(place="x"), SiteFacts())):
            fields = [point.field for point in points(site, host, facts)]
            assert len(fields) == len(set(fields))


def test_a_cray_without_slurm_is_asked_for_its_own_launcher():
    found = {p.field: p for p in points(sites.site("polaris"), HOST, FACTS)}
    assert found["scheduler"].state == "undecided"
    assert found["launch.launcher"].text == "mpiexec: /usr/bin/srun"


def test_the_folder_for_everybody_is_looked_for_where_jobs_run():
    site = msgspec.structs.replace(SITE, shared="/project/course")
    assert words(site).folders[-1] == "/project/course"
    there = {"there": (*FACTS.there, True), "there_nodes": (*FACTS.there_nodes, False)}
    assert states(site=site, **there)["shared"].text == "/project/course: does not exist on compute nodes"
    there["there_nodes"] = (*FACTS.there_nodes, True)
    assert "shared" not in states(site=site, **there)
