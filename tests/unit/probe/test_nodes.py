"""Test the probe of a login host and its compute nodes: toolkit splits, groups and merges the answers."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.errors import BadInput, CheckFailed
from toolkit.model.facts import ContainerRuntime, HostFacts, SlurmFacts
from toolkit.probe.answers import separate
from toolkit.probe.asking import NodeChoice, command, of_job
from toolkit.probe.bundle import Bundle, encode, load, read
from toolkit.probe.evidence import parse
from toolkit.probe.facts import host_facts
from toolkit.probe.group import FIELDS, Group, differences, different_fields, format_field, group_nodes
from toolkit.probe.view import view
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

EVIDENCE = Path(__file__).parents[2] / "evidence"
RECORDED = (EVIDENCE / "virtual-cluster-nodes.txt").read_text()
PLACE = "toolkit-probe/1\n@ kernel\n|6.1\n@rc 0\n@end\n"
NODE = "0: @node node1\n0: toolkit-probe/1\n0: @ kernel\n0: |6.2\n0: @rc 0\n0: @end\n"


def answer(rest: str) -> str:
    return f"{PLACE}toolkit-nodes/1\n{rest}"


def test_a_recorded_answer_of_a_login_host_and_two_nodes_of_which_one_has_little_shared_memory():
    bundle = read(RECORDED, "here", NodeChoice("all", 10))
    assert [group.nodes for group in bundle.groups] == [("node1",), ("node2",)]
    assert bundle.groups[1].differs == ("shm",)
    assert bundle.silent == {}
    host = bundle.host
    assert host.place == "here"
    assert host.compute_nodes == ("node1",)
    assert host.differs == {"shm": "node1: 4.4 GiB; node2: 64 MiB"}
    assert host.shm == 4628268 << 10
    assert host.slurm is not None
    assert host.slurm.mpi_default == "pmix"
    assert host.pmix == "5.0.7"
    assert host.tmpdir == "/tmp"
    assert host.environment == {}
    assert host.cite("glibc") == "node1: getconf GNU_LIBC_VERSION: glibc 2.41"
    assert host.cite("slurm.mpi_default") == "scontrol show config: MpiDefault = pmix"
    assert bundle.login is not None
    assert bundle.login.shm == 1851308 << 10


def test_a_queue_that_is_full_is_told_and_the_login_host_is_seen():
    bundle = read((EVIDENCE / "queue-is-full.txt").read_text(), "here", NodeChoice("1", 3))
    assert bundle.groups == ()
    assert bundle.host.compute_nodes is None
    why = "no node answered within 3 s: srun: Unable to allocate resources: Requested nodes are busy"
    assert bundle.host.unknown["compute_nodes"] == f"compute nodes: {why}"
    assert bundle.host.glibc == "2.41"


def test_nodes_that_do_not_end_are_told_apart_from_those_that_say_nothing():
    cut = NODE.replace("0:", "1:").replace("node1", "node2").removesuffix("1: @end\n")
    known = (
        "|node1|idle|debug*\n|node2|mixed|debug*\n|node3|idle|debug*\n|node4|down*|debug*\n|far|idle|other\n"
    )
    answers = separate(answer(f"{known}{NODE}{cut}@srun 124\n@nodesend\n"), NodeChoice("all"))
    assert set(answers.nodes) == {"node1"}
    assert answers.silent == {
        "node2": "its answer was incomplete",
        "node3": "did not answer",
        "node4": "toolkit did not probe this node, which is down*",
    }
    assert answers.trouble == ""


@every_row(
    ("rest", "nodes", "why"),
    [
        ("@srun 127\n@nodesend\n", "1", "srun was not found"),
        ("@srun 127\n!there is no folder for temporary files\n@nodesend\n", "1", "no folder for temporary"),
        ("@srun 124\n@nodesend\n", "1", "no node answered within 5 s"),
        ("", "1", "no node answered within 5 s"),
        ("@srun 1\n!Invalid account\n@nodesend\n", "1", "srun: Invalid account"),
        (NODE.removesuffix("0: @end\n") + "@srun 0\n@nodesend\n", "1", "the answer of node1 was incomplete"),
    ],
)
def test_why_no_node_answered(rest, nodes, why):
    assert why in separate(answer(rest), NodeChoice(nodes)).trouble


def test_names_that_were_asked_and_say_nothing():
    answers = separate(answer(f"{NODE}@srun 0\n@nodesend\n"), NodeChoice("node[1-3]"))
    assert answers.silent == {"node2": "did not answer", "node3": "did not answer"}


def test_nodes_of_another_partition_are_not_meant():
    known = "|a1|idle|debug*\n|b1|idle|gpu\n"
    assert set(separate(answer(f"{known}@srun 1\n"), NodeChoice("all", partition="gpu")).silent) == {"b1"}


def test_lines_of_nodes_may_come_in_any_order_and_labels_may_be_padded():
    ten = NODE.replace("0: ", "10: ").replace("node1", "node11")
    mixed = [
        line
        for pair in zip(NODE.replace("0: ", " 0: ").splitlines(), ten.splitlines(), strict=True)
        for line in pair
    ]
    answers = separate(answer("\n".join(mixed) + "\n@srun 0\n@nodesend\n"), NodeChoice("2"))
    assert set(answers.nodes) == {"node1", "node11"}
    assert "|6.2" in answers.nodes["node11"]


def test_what_a_node_prints_before_its_answer_is_dropped():
    noisy = NODE.replace("0: toolkit", "0: Welcome\n0: @end\n0: toolkit")
    assert parse(separate(answer(noisy), NodeChoice()).nodes["node1"], "node1")["kernel"].ok


def test_an_answer_that_we_ended_ourselves_keeps_what_the_place_said():
    bundle = read("toolkit-probe/1\n@ kernel\n|6.1\n@rc 0\n@ slurm\n|sl", "here", NodeChoice(), cut=True)
    assert bundle.host.kernel == "6.1"
    with pytest.raises(CheckFailed, match="ended after"):
        read("toolkit-probe/1\n@ kernel\n|6.1\n", "here", NodeChoice())


def host(**changes) -> HostFacts:
    return HostFacts(place="x", kernel="6.1", glibc="2.36", shm=1 << 30, **changes)


def test_equal_nodes_are_one_group_and_the_largest_comes_first():
    old = msgspec.structs.replace(host(), glibc="2.28")
    groups = group_nodes({"n10": host(), "n2": host(), "n1": old})
    assert [group.nodes for group in groups] == [("n2", "n10"), ("n1",)]
    assert groups[0].differs == ()
    assert groups[1].differs == ("glibc",)
    assert different_fields(groups) == {"glibc": "n[2,10]: 2.36; n1: 2.28"}


def test_what_differs_by_nature_does_not_count():
    one = host(evidence={"glibc": "a"}, tmpdir="/local/n1/job.12", tmpdir_usable=True)
    two = msgspec.structs.replace(
        one, place="y", evidence={"glibc": "b"}, shm=(1 << 30) + 4096, tmpdir="/local/n2/job.13"
    )
    assert len(group_nodes({"n1": one, "n2": two})) == 1
    assert differences(one, msgspec.structs.replace(one, shm=1 << 20)) == ("shm",)


def test_not_there_and_not_known_are_two_things():
    absent = host(absent={"runtime": "not found"})
    unknown = host(unknown={"runtime": "no answer in time"})
    assert group_nodes({"n1": absent, "n2": unknown})[1].differs == ("runtime",)
    assert (format_field(absent, "runtime"), format_field(unknown, "runtime")) == ("none", "not known")


def test_values_are_shown_in_one_line():
    facts = host(
        locked_memory=-1,
        xpmem=True,
        fabrics=(),
        interfaces=("eth0", "ib0"),
        mpis=(),
        environment={"OMPI_MCA_btl": "tcp", "UCX_TLS": ""},
    )
    values = [
        format_field(facts, n)
        for n in ("locked_memory", "xpmem", "fabrics", "interfaces", "mpis", "environment")
    ]
    assert values == ["unlimited", "yes", "none", "eth0, ib0", "none", "OMPI_MCA_btl=tcp, UCX_TLS"]
    assert format_field(msgspec.structs.replace(facts, locked_memory=65536), "locked_memory") == "64 KiB"
    runtime = ContainerRuntime(name="apptainer", version="1.4.5", path="/a", unbound=("/lustre:/data",))
    assert (
        format_field(host(runtime=runtime), "runtime") == "apptainer 1.4.5 setuid not known, without /lustre"
    )


SLURM = SlurmFacts(version="24.11.5", settings={"TmpFS": "/tmp"})


def test_the_view_takes_slurm_from_the_login_host_and_the_rest_from_the_nodes():
    login = host(slurm=SLURM, evidence={"slurm.version": "sinfo", "glibc": "here"}, unknown={"shm": "x"})
    node = msgspec.structs.replace(
        login,
        glibc="2.28",
        slurm=SlurmFacts(version="1"),
        evidence={"slurm.version": "no", "glibc": "there"},
        unknown={},
        absent={"runtime": "not found"},
    )
    seen = view(login, (Group(nodes=("n1", "n2"), facts=node),))
    assert seen.slurm == SLURM
    assert seen.glibc == "2.28"
    assert seen.evidence == {"slurm.version": "sinfo", "glibc": "n[1-2]: there"}
    assert seen.absent == {"runtime": "n[1-2]: not found"}
    assert seen.unknown == {}
    assert seen.compute_nodes == ("n1", "n2")


def test_what_slurm_sets_for_a_step_is_not_what_a_job_brings():
    login = host(slurm=SLURM, environment={"HYDRA_BOOTSTRAP": "", "UCX_TLS": ""})
    told_there = {"OMPI_MCA_plm_slurm_args": "--external-launcher", "SLURM_MPI_TYPE": "none", "TMPDIR": ""}
    node = host(environment={**told_there, "UCX_TLS": ""}, tmpdir="/tmp")
    assert view(login, (Group(nodes=("n1",), facts=node),)).environment == {
        "UCX_TLS": "",
        "HYDRA_BOOTSTRAP": "",
    }
    own = msgspec.structs.replace(node, tmpdir="/scratch")
    assert "TMPDIR" in view(login, (Group(nodes=("n1",), facts=own),)).environment


def test_without_nodes_the_view_is_the_login_host_and_says_why():
    asked = view(host(slurm=SLURM), (), "no node answered within 5 s")
    assert asked.unknown["compute_nodes"] == "compute nodes: no node answered within 5 s"
    alone = view(host(absent={"slurm": "sinfo, srun: not found on PATH"}), (), "srun was not found")
    assert alone.absent["compute_nodes"] == "sinfo, srun: not found on PATH"


def test_one_command_asks_the_place_and_its_nodes():
    both = command(NodeChoice("node[1-2]", 7, "gpu"))
    assert both.words == ("sh", "-s", "node[1-2]", "7", "gpu")
    text = (both.stdin or b"").decode()
    assert "\n@probe@\n" not in text
    assert "\nask kernel" in text
    assert command(NodeChoice("0")).words == ("sh", "-s")
    assert command(NodeChoice("007")).words[2] == "7"


def one_question(text: bytes) -> bytes:
    """Return the probe's script with only its first question, so that the script runs fast."""
    before, _, rest = text.partition(b"\nask kernel")
    _, end, after = rest.partition(b"\nprintf '@end\\n'\n")
    return before + end + after


@pytest.fixture
def slurm(tmp_path):
    known = "node1|idle|a*\\nnode1|idle|b\\nnode2|mixed|b\\nnode3|idle|c\\nnode4|idle|ab\\n"
    for name, does in (
        ("srun", 'cat >/dev/null; printf "%s\\n" "$@" >"$0.words"'),
        ("sinfo", f'printf "{known}"'),
        ("scontrol", "exit 0"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)

    def run(asked, before="", edit=lambda text: text):
        made = command(asked)
        words = ("sh", "-c", f'printf "{before}"; exec "$@"', "sh", *made.words)
        there = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": ""}
        text = edit(one_question(made.stdin or b""))
        return LocalRunner().run(Command(words, stdin=text, env=there, timeout=30)).text

    return run


@every_row("nodes", ["0", "1"])
def test_what_a_login_shell_prints_without_a_line_break_hides_nothing(slurm, nodes):
    text = slurm(NodeChoice(nodes, 1), before="Welcome!")
    assert text.startswith("Welcome!")
    assert read(text, "here", NodeChoice(nodes, 1)).host.architecture


def test_an_answer_that_ends_without_a_line_break_hides_no_node(slurm):
    def unended(text):
        return text.replace(b"printf '@end\\n'", b"printf '@end\\nbye'")

    answers = separate(slurm(NodeChoice("1", 1), edit=unended), NodeChoice("1", 1))
    assert answers.ended
    assert answers.login.rstrip().endswith("bye")


@every_row(
    ("partition", "nodes"), [("a,b", "node1,node2"), ("b", "node1,node2"), ("c,x", "node3"), ("", "node1")]
)
def test_all_nodes_of_several_partitions_are_asked(slurm, tmp_path, partition, nodes):
    slurm(NodeChoice("all", 1, partition))
    assert f"--nodelist={nodes}" in (tmp_path / "srun.words").read_text().splitlines()


@every_row(("partition", "asked"), [(None, ""), ("gpu", "gpu"), ("a+b@c,gpu", "a+b@c"), ("", "")])
def test_a_job_has_a_node_of_its_partition_asked(partition, asked):
    assert of_job(partition) == NodeChoice(partition=asked)


@every_row(
    ("nodes", "why"),
    [
        ("node[1-", "give a number of nodes, `all`, or names such as node[1-4]"),
        ("node[1-]", "give a number of nodes, `all`, or names"),
        ("node]", "give a number of nodes, `all`, or names"),
        ("node[5-3]", "range 5-3 first"),
        ("node[1-99999]", "has more than 65536 nodes"),
        ("65537", "at most 65536"),
        ("9" * 5000, "at most 65536"),
    ],
)
def test_what_is_no_list_of_nodes_is_refused_as_that_of_a_job_is(nodes, why):
    with pytest.raises(BadInput, match="--nodes") as caught:
        NodeChoice(nodes)
    assert why in caught.value.message


@every_row("wrong", ["", "-1", "a b", "$(id)", "node1;id", "*"])
def test_what_is_no_list_of_nodes_is_refused(wrong):
    with pytest.raises(BadInput, match="--nodes"):
        NodeChoice(wrong)
    with pytest.raises(BadInput, match="--partition"):
        NodeChoice(partition=wrong or "a b")


def test_a_facts_file_of_several_machines_is_read_back(tmp_path):
    bundle = read(RECORDED, "here", NodeChoice("all", 10))
    file = tmp_path / "facts.json"
    file.write_bytes(encode(bundle))
    assert load(file) == bundle.host
    assert msgspec.json.decode(file.read_bytes(), type=Bundle) == bundle


def test_a_facts_file_of_the_first_schema_is_still_read(tmp_path):
    file = tmp_path / "facts.json"
    file.write_bytes(msgspec.json.encode({"schema": "toolkit.facts/1", "host": {"place": "old"}, "raw": ""}))
    assert load(file) == HostFacts(place="old")


def test_the_raw_answer_of_a_place_and_its_nodes_is_facts_too():
    assert load(EVIDENCE / "virtual-cluster-nodes.txt").compute_nodes == ("node1",)


LINES = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(RECORDED.splitlines()),
        st.sampled_from(
            ["0: @node n1", "1: @node n1", "@srun x", "@srun 0", "!", "|a|b|c", "0: toolkit-probe/1"]
        ),
    ),
    max_size=60,
)


@settings(max_examples=count(50, 200), deadline=None)
@given(LINES, st.sampled_from(["1", "all", "node[1-9]", "0"]))
@example(["0: @node n1", "0: toolkit-probe/1", "0: @end"], "1")  # an answer without any fact
def test_any_answer_of_nodes_is_taken_apart(lines, nodes):
    bundle = read(answer("\n".join(lines)), "here", NodeChoice(nodes))
    assert bundle.login.kernel == "6.1"
    assert bundle.host.kernel is not None or "kernel" in bundle.host.unknown
    assert bundle.host.compute_nodes or {"compute_nodes"} & {*bundle.host.unknown, *bundle.host.absent}


QUESTIONS = st.sampled_from([line[2:] for line in RECORDED.splitlines() if line.startswith("@ ")])
WORDS = st.sampled_from([w for line in RECORDED.splitlines() for w in line.split(" ")][:400])
SAID = st.lists(st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=4).map(" ".join)), max_size=6)


@settings(max_examples=count(75, 300), deadline=None)
@given(st.dictionaries(QUESTIONS, st.tuples(SAID, st.integers(0, 255)), max_size=8))
def test_facts_are_read_from_any_answer_and_each_missing_one_has_a_reason(said):
    body = "".join(
        f"@ {name}\n"
        + "".join(f"|{line}\n" for text in lines for line in text.split("\n"))
        + f"@rc {status}\n"
        for name, (lines, status) in said.items()
    )
    facts = host_facts("here", parse(f"toolkit-probe/1\n{body}@end\n", "here"))
    for name in FIELDS:
        if getattr(facts, name) is None:
            assert name in facts.absent or name in facts.unknown, name
    assert group_nodes({"a": facts, "b": facts})[0].nodes == ("a", "b")
