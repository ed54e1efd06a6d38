"""Test how toolkit reads the probe's answers for a site profile, with recorded and constructed answers."""

from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.model.sitefacts import Association, Folder, PartitionFacts, SiteFacts
from toolkit.probe.asking import NodeChoice, SiteWords, command, of_job
from toolkit.probe.bundle import load_bundle, read
from toolkit.probe.evidence import Section, parse
from toolkit.probe.read.site import partitions, site_facts

EVIDENCE = Path(__file__).parents[2] / "evidence"
CLUSTER = (EVIDENCE / "virtual-cluster-site.txt").read_text()


def said(**sections: str) -> dict[str, Section]:
    return {name: Section(name, tuple(text.splitlines()), 0) for name, text in sections.items()}


def test_the_virtual_cluster_is_read_as_it_answered():
    facts = read(CLUSTER, "here", NodeChoice("1", site=SiteWords())).site
    part = PartitionFacts(
        name="debug", default=True, nodes=2, cpus=2, memory_mb=8783, gpus=0, max_time="UNLIMITED", cores=2,
        threads=1, features=(),
    )  # fmt: skip
    assert facts == SiteFacts(
        cluster="test-f2af6c",
        enforces=("none",),
        partitions=(part,),
        modules="",
        offers=(),
        loaded=("there is no command module",),
        commands=("/usr/bin/apptainer", "/usr/bin/singularity", "/usr/bin/singularity", "/usr/bin/srun"),
        folders=(
            Folder(variable="HOME", path="~", mount="/home", kind="ext2/ext3"),
            Folder(variable="WORK", path="/work/-", mount="/work", kind="ext2/ext3"),
        ),
        there=(True, True, True, False),
        there_nodes=(False, True, True, False),
        scratch=("/tmp",),
        up=("eth0",),
    )


def test_a_plain_probe_tells_partitions_and_nothing_that_was_not_asked():
    facts = read((EVIDENCE / "virtual-cluster-nodes.txt").read_text(), "here", NodeChoice("all")).site
    assert facts.partitions is not None
    assert facts.partitions[0].memory_mb == 8783
    assert (facts.partitions[0].max_time, facts.partitions[0].cores) == ("", None)
    for unknown in (
        facts.associations,
        facts.modules,
        facts.loaded,
        facts.folders,
        facts.there,
        facts.scratch,
    ):
        assert unknown is None
    assert facts.up == ("eth0",)


def test_partitions_of_unlike_nodes_with_gpus_and_limits():
    rows = (
        "cpu|100|up|96|191000|(null)|1-00:00:00|1-64|2|24|2\n"
        "gpu*|10|up|80|180000|gpu:v100:4(S:0-1)|06:00:00|1-infinite|2|20|2\n"
        "gpu*|2|up|80|360000+|craynetwork:4,gpu:v100:2|06:00:00|1-infinite|2|20|2\n"
        "old|4|inact|16|64000|gpu:2|infinite|2|2|8|1\n"
        "mig|1|up|16|64000|gpu:a100_1g.5gb:7(S:0)|infinite|1-infinite|2|8|1"
    )
    found = partitions(said(partitions=rows, features="cpu|skylake,opa\ncpu|rome,opa\ngpu|(null)"))
    assert found is not None
    gpu, cpu, old, mig = found
    assert (gpu.name, gpu.default, gpu.nodes, gpu.gpus, gpu.gpu) == ("gpu", True, 12, 4, "v100")
    assert (gpu.memory_mb, gpu.max_time, gpu.max_nodes) == (360000, "06:00:00", None)
    assert (cpu.cores, cpu.threads, cpu.max_nodes, cpu.gpus) == (48, 2, 64, 0)
    assert cpu.features == ("skylake", "opa", "rome")
    assert gpu.features == ()
    assert (old.up, old.gpus, old.gpu, old.max_nodes) == (False, 2, "", 2)
    assert (mig.gpu, mig.gpus) == ("a100_1g.5gb", 7)


@every_row(
    ("gres", "count", "kind"),
    [
        (["gpu:2080ti:8"], 8, "2080ti"),
        (["gpu:3090:4(S:0-1)"], 4, "3090"),
        (["craynetwork:4,gpu:1g.5gb:7"], 7, "1g.5gb"),
        (["gpu:8(S:0,2)"], 8, ""),
        (["gpu:v100:4", "gpu:a100:8"], 8, ""),
        (["gpu:a100:2(S:0,1),gpu:t4:4"], 6, ""),
        (["gpu:a100:2,gpu:a100:2", "(null)"], 4, "a100"),
        (["gpu:v100:2", "gpu:4"], 4, ""),
        (["gpu:many", "shard:8"], 0, ""),
    ],
)
def test_gpus_of_a_node_and_their_type_where_there_is_one(gres, count, kind):
    rows = "\n".join(f"gpus|2|up|16|64000|{of_row}|infinite|1-infinite|2|8|1" for of_row in gres)
    (found,) = partitions(said(partitions=rows)) or ()
    assert (found.gpus, found.gpu) == (count, kind)


@every_row(
    ("size", "nodes"),
    [
        ("1-1K", 1024),
        ("1-1.50K", 1536),
        ("1-2K", 2048),
        ("2-1M", 1 << 20),
        ("1-1025", 1025),
        ("1-infinite", None),
    ],
)
def test_numbers_that_sinfo_shortens_are_read_whole(size, nodes):
    (found,) = partitions(said(partitions=f"big|3K|up|1K|1G+|(null)|infinite|{size}|2|8|1")) or ()
    assert (found.max_nodes, found.nodes, found.cpus, found.memory_mb) == (nodes, 3072, 1024, 1 << 30)


@every_row("rows", ["", "debug", "a|b|c|d|e|f|g|h|i|j|k", "|" * 10, f"a|{'9' * 5000}|up|1|1|(null)"])
def test_rows_that_say_nothing_are_no_fault(rows):
    found = partitions(said(partitions=rows))
    assert found is None or all(part.memory_mb is None or part.memory_mb >= 0 for part in found)


def test_accounts_are_those_of_the_person_the_default_one_first():
    facts = site_facts(
        said(accounts="default b\nmay a||normal,long\nmay b|gpu|normal\nmay b||high\nmay -||normal\nmay x")
    )
    assert facts.associations == (
        Association(account="b", qos=("normal", "high"), default=True),
        Association(account="a", qos=("normal", "long")),
    )


def test_a_real_accounting_database_is_read():
    facts = site_facts(parse((EVIDENCE / "accounts.txt").read_text(), "here"))
    assert facts.associations == (
        Association(account="proj2", qos=("normal",), default=True),
        Association(account="proj1", qos=("long", "normal")),
    )


@every_row("kind", ["lmod", "environment-modules"])
def test_real_module_systems_are_read(kind):
    sections = parse((EVIDENCE / f"modules-{kind}.txt").read_text(), "here")
    facts = site_facts(sections)
    assert facts.modules in {"lmod 8.7.60", "modules 5.5.0"}
    assert facts.offers == ("singularity/3.6.4", "singularity/3.8.7")
    assert facts.loaded is not None
    loaded, unknown, broken, last = facts.loaded
    assert (loaded, last) == ("", "")
    assert "nope/1" in unknown
    assert "broken/1" in broken
    assert facts.commands == ("", "/opt/s/bin/singularity", "/opt/s/bin/singularity", "/usr/bin/srun")
    assert facts.folders == (Folder(variable="HOME", path="~", mount="/", kind="overlayfs"),)


def test_the_module_that_is_loaded_by_default_comes_first():
    text = "system modules 5\noffers singularity/3.6\noffers singularity/\n"
    text += "offers singularity/3.8(default)\nasked yes"
    assert site_facts(said(modules=text)).offers == ("singularity/3.8", "singularity/3.6")


def test_a_login_shell_that_ends_early_tells_nothing():
    facts = site_facts(said(modules="system lmod 8", places="there yes"))
    assert facts.modules is facts.offers is facts.there is None


def test_what_a_profile_prints_is_no_answer():
    text = "there will be maintenance\nsystem x\nasked now\nsystem none\nthere yes\nasked yes\nthere no"
    facts = site_facts(said(modules=text, places=text))
    assert (facts.modules, facts.there) == ("", (True,))


def test_words_of_a_profile_reach_the_place_quoted_and_in_order():
    words = SiteWords(modules=("gcc/8", "swap a b"), commands=("singularity",), folders=("$WORK/x", "/opt"))
    sent = command(NodeChoice("0", site=words)).stdin
    assert sent is not None
    before, told, after = sent.partition(b"export TOOLKIT_SITE")
    assert before.startswith(b"# If Slurm is not on PATH")
    assert (told + after).startswith(
        b"export TOOLKIT_SITE=yes\nexport TOOLKIT_MODULES='gcc/8 swap,a,b'\n"
        b"export TOOLKIT_COMMANDS=singularity\nexport TOOLKIT_FOLDERS='$WORK/x /opt'\n#!/bin/sh\n"
    )
    plain = command(NodeChoice("0")).stdin
    assert plain is not None
    assert plain.startswith(before)
    assert plain.removeprefix(before).startswith(b"#!/bin/sh\n")


def test_a_job_that_names_an_account_asks_for_accounts_alone():
    sent, plain = command(of_job("gpu", accounts=True)).stdin, command(of_job("gpu")).stdin
    assert sent is not None
    assert plain is not None
    assert b"export TOOLKIT_ACCOUNTS=yes\n" in sent
    assert b"export TOOLKIT_SITE" not in sent
    assert sent.replace(b"export TOOLKIT_ACCOUNTS=yes\n", b"") == plain


def test_a_facts_file_brings_the_site_along_and_a_host_alone_does_not(tmp_path):
    raw = tmp_path / "raw.txt"
    raw.write_text(CLUSTER)
    assert load_bundle(raw).site.cluster == "test-f2af6c"
    host = tmp_path / "host.json"
    host.write_text('{"schema": "toolkit.host/1", "place": "here"}')
    assert load_bundle(host).site == SiteFacts()


def test_no_answer_at_all_is_no_site():
    with pytest.raises(CheckFailed):
        read("banner\n", "here", NodeChoice("0", site=SiteWords()))
