"""Test how toolkit makes a site profile from the probe's output, recorded on clusters of several centres."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.engine.traits import pmix_type
from toolkit.errors import BadInput, Missing
from toolkit.knowledge import sites
from toolkit.knowledge.sitefields import objections
from toolkit.launch.sites.detect import draft, with_answers
from toolkit.model.facts import ContainerRuntime, HostFacts, SlurmFacts
from toolkit.model.site import Partition
from toolkit.model.sitefacts import Association, Folder, PartitionFacts, SiteFacts
from toolkit.probe.asking import NodeChoice, SiteWords
from toolkit.probe.bundle import read
from toolkit.report.site import profile

EVIDENCE = Path(__file__).parents[3] / "evidence"
RUNTIME = ContainerRuntime(name="apptainer", version="1.3", path="/usr/bin/apptainer")
CENTRE = HostFacts(
    place="login.example.org",
    architecture="x86_64",
    slurm=SlurmFacts(version="23.02", mpi_types=("none", "pmi2", "pmix", "pmix_v4"), mpi_default="pmix_v4"),
    infiniband=("mlx5_0",),
    fabrics=(),
    compute_nodes=("n1",),
    absent={"runtime": "apptainer, singularity: not found on PATH"},
)
SITE = SiteFacts(
    cluster="centre",
    enforces=("associations", "limits"),
    partitions=(
        PartitionFacts(
            name="cpu", nodes=100, cores=48, threads=2, gpus=0, max_time="1-00:00:00", max_nodes=64
        ),
        PartitionFacts(name="gpu", nodes=8, cores=40, gpus=4, gpu="v100", features=("volta",)),
        PartitionFacts(name="old", up=False),
    ),
    associations=(Association(account="b", default=True), Association(account="a")),
    offers=("apptainer/1.3", "singularity/3.8"),
    commands=("", ""),
    folders=(
        Folder(variable="HOME", path="~", mount="/home"),
        Folder(variable="SCRATCH", path="/scratch/-", mount="/scratch"),
        Folder(variable="PROJECT", path="/p/project/x", mount="/p/project"),
    ),
    scratch=("/local/job123",),
    up=("eth0", "ib0", "docker0"),
)


def changed(**fields: object) -> SiteFacts:
    return msgspec.structs.replace(SITE, **fields)


def test_the_virtual_cluster_gets_a_profile_without_a_question():
    bundle = read(
        (EVIDENCE / "virtual-cluster-site.txt").read_text(), "here", NodeChoice("1", site=SiteWords())
    )
    found = draft("mine", bundle.host, bundle.site, day="2026-11-21")
    assert found.questions == ()
    assert found.gaps == ()
    site = found.site
    assert site.partitions == (
        Partition(
            name="debug", default=True, max_time="UNLIMITED", nodes=2, cores=2, threads=1, memory_mb=8783
        ),
    )
    assert (site.container.command, site.container.binds) == ("apptainer", ("/work",))
    assert (site.launch.mode, site.launch.mpi) == ("srun-pmix", "pmix")
    assert (site.directory, site.scratch, site.network) == ("$WORK/toolkit", "/tmp", "eth0")
    assert site.sources == ("toolkit init, 2026-11-21: the facts of here",)
    assert sites.parse(profile(site), "mine.toml") == site


@every_row(
    ("up", "network"),
    [
        (("eno1", "hsn0", "hsn1"), "hsn0"),
        (("bond0", "ibP2p1s0"), "ibP2p1s0"),
        (("bond0", "opa0", "podman0"), "opa0"),
        (("br-12ab", "eno1"), "eno1"),
        (("docker0",), ""),
        (None, ""),
    ],
)
def test_the_network_is_a_fast_one_and_none_that_stays_on_its_node(up, network):
    asked = msgspec.structs.replace(CENTRE, compute_nodes=("n1",))
    assert draft("centre", asked, changed(up=up)).site.network == network


def test_a_centre_with_modules_accounts_and_a_fast_network():
    site = draft("centre", CENTRE, SITE, destination="me@login").site
    assert [part.name for part in site.partitions] == ["cpu", "gpu"]
    assert (site.partitions[1].gpus, site.partitions[1].gpu, site.gpus.ask) == (4, "v100", "gres")
    assert (site.partitions[0].max_nodes, site.partitions[0].gpus) == (64, 0)
    assert (site.container.command, site.container.modules) == ("apptainer", ("apptainer/1.3",))
    assert site.container.binds == ("/p/project", "/scratch")
    assert (site.network, site.fabric) == ("ib0", "InfiniBand or RoCE")
    assert (site.launch.mode, site.launch.mpi) == ("srun-pmix", "pmix_v4")
    assert (site.directory, site.host) == ("$PROJECT/toolkit", "me@login")
    assert (site.defaults.account, site.defaults.partition) == ("b", "cpu")
    assert sites.parse(profile(site), "centre.toml") == site


def test_only_what_a_cluster_cannot_tell_is_asked():
    asked = draft("centre", CENTRE, SITE).questions
    assert [(q.option, q.default, q.choices) for q in asked] == [
        ("--partition", "cpu", ("cpu", "gpu")),
        ("--account", "b", ("b", "a")),
        ("--module", "apptainer/1.3", ("apptainer/1.3", "singularity/3.8")),
    ]
    one = changed(
        partitions=(msgspec.structs.replace(SITE.partitions[0], default=True), SITE.partitions[1]),
        associations=SITE.associations[:1],
        offers=SITE.offers[:1],
    )
    assert draft("centre", CENTRE, one).questions == ()


def test_an_account_that_slurm_wants_and_does_not_tell_is_asked_and_else_said_to_be_open():
    found = draft("centre", CENTRE, changed(associations=None))
    assert any(q.option == "--account" and q.default == "" and not q.choices for q in found.questions)
    assert any("defaults.account" in gap for gap in found.gaps)
    assert any("defaults.account" in line for line in found.site.notes.splitlines())
    without = draft("centre", CENTRE, changed(associations=None, enforces=()))
    assert all(q.option != "--account" for q in without.questions)


def test_a_runtime_on_path_needs_no_module():
    host = msgspec.structs.replace(CENTRE, runtime=RUNTIME, absent={})
    found = draft("centre", host, SITE)
    assert (found.site.container.command, found.site.container.modules) == ("apptainer", ())
    assert all(q.option != "--module" for q in found.questions)


def test_a_runtime_that_only_the_login_shell_has_is_taken_where_no_node_was_asked():
    host = msgspec.structs.replace(
        CENTRE, compute_nodes=None, absent={}, unknown={"compute_nodes": "compute nodes: x"}
    )
    found = draft("centre", host, changed(commands=("", "/opt/bin/singularity"), up=("eth0",)))
    assert found.site.container.command == "singularity"
    assert (found.site.network, found.site.scratch) == ("", "/local/job123")
    assert found.gaps[0] == "No compute node answered (x): scratch folder and network are unknown."


def test_no_runtime_anywhere_is_told():
    found = draft("centre", CENTRE, changed(offers=()))
    assert any("container.command" in gap for gap in found.gaps)


def test_a_folder_that_is_made_for_each_job_is_named_by_its_variable():
    host = msgspec.structs.replace(CENTRE, tmpdir="/local/job123")
    assert draft("centre", host, SITE).site.scratch == "$TMPDIR"


def test_gpus_without_gres_come_with_the_partition():
    host = msgspec.structs.replace(CENTRE, gpus=("Tesla V100",))
    none = tuple(msgspec.structs.replace(part, gpus=0, gpu="") for part in SITE.partitions or ())
    site = draft("centre", host, changed(partitions=none)).site
    assert site.gpus.ask == "partition"
    assert [part.gpus for part in site.partitions] == [None, None]


@every_row(
    ("types", "default", "mode", "mpi"),
    [
        (("none", "pmi2"), "none", "srun-pmi2", "pmi2"),
        (("none", "pspmix", "pmi2"), "pspmix", "srun-pmix", "pspmix"),
        (("none", "pmix", "pmix_v3"), "none", "srun-pmix", "pmix"),
        (("none", "cray_shasta"), "none", None, ""),
        (None, None, None, ""),
    ],
)
def test_what_slurm_offers_to_ranks_names_the_mode(types, default, mode, mpi):
    host = msgspec.structs.replace(
        CENTRE, slurm=SlurmFacts(version="23.02", mpi_types=types, mpi_default=default)
    )
    launch = draft("centre", host, SITE).site.launch
    assert (launch.mode, launch.mpi) == (mode, mpi)
    # The profile names srun-pmix only if the engine finds a PMIx plugin in Slurm.
    assert (launch.mode == "srun-pmix") == (pmix_type(host) is not None)


def test_without_slurm_there_is_no_profile():
    with pytest.raises(Missing, match="Slurm was not found: sinfo, srun: not found on PATH"):
        draft("x", HostFacts(place="here", absent={"slurm": "sinfo, srun: not found on PATH"}), SiteFacts())


def test_answers_are_held_against_what_there_is():
    found = draft("centre", CENTRE, SITE)
    site = with_answers(
        found,
        {
            "--partition": "gpu",
            "--account": "a",
            "--module": "singularity/3.8",
            "--directory": "/data/$USER/x",
        },
    )
    assert (site.defaults.partition, site.defaults.account) == ("gpu", "a")
    assert (site.container.modules, site.directory) == (("singularity/3.8",), "/data/$USER/x")
    for option, value, said in (
        (
            "--partition",
            "gpus",
            "--partition gpus: unknown name (did you mean gpu?); choices: cpu, gpu",
        ),
        ("--account", "c", "choices: b, a"),
        ("--directory", "x y", "--directory: directory: 'x y' is not allowed"),
    ):
        with pytest.raises(BadInput) as caught:
            with_answers(found, {option: value})
        assert said in caught.value.message


WORDS = st.lists(st.text(max_size=8), max_size=2).map(tuple)
NAME = st.one_of(st.text(max_size=4), st.sampled_from(["cpu", "gpu", "a b"]))
PARTS = st.lists(
    st.builds(
        PartitionFacts,
        name=NAME,
        default=st.booleans(),
        gpus=st.integers(0, 9),
        gpu=NAME,
        cores=st.none() | st.integers(1, 99),
        features=st.none() | WORDS,
    ),
    max_size=3,
).map(tuple)


@given(PARTS, WORDS, WORDS, NAME, NAME)
def test_whatever_a_cluster_says_the_draft_is_a_profile(parts, offers, scratch, mount, account):
    facts = SiteFacts(
        partitions=parts,
        associations=(Association(account=account),),
        offers=offers,
        scratch=scratch,
        up=offers,
        folders=(Folder(variable="WORK", path="/x", mount=mount),),
    )
    site = draft("x", CENTRE, facts).site
    assert list(objections(site)) == []
    assert sites.parse(profile(site), "x.toml") == site
