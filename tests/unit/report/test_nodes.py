"""Test the table of probed machines: equal facts, different facts, and nodes without an answer."""

from pathlib import Path

import msgspec

from toolkit.probe.asking import NodeChoice
from toolkit.probe.bundle import Bundle, read
from toolkit.report.doctor.sides import side_by_side
from toolkit.report.lines import leave_unstyled
from toolkit.report.nodes import machines

EVIDENCE = Path(__file__).parents[2] / "evidence"


def page(bundle: Bundle, width: int = 100) -> str:
    return "\n".join(machines(bundle, leave_unstyled, width))


def recorded(name: str, nodes: str) -> Bundle:
    return read((EVIDENCE / name).read_text(), "here", NodeChoice(nodes, 3))


def test_groups_and_the_login_host_are_told_by_what_differs():
    assert page(recorded("virtual-cluster-nodes.txt", "all")).splitlines()[:4] == [
        "Machines",
        "  node1          1  as above",
        "  node2          1  shm: 64 MiB (above: 4.4 GiB)",
        "  login host        shm: 1.8 GiB (above: 4.4 GiB); tmpdir: none (above: /tmp); tmpdir usable: none",
    ]


def test_nodes_that_said_nothing_stand_together_by_their_reason():
    bundle = recorded("virtual-cluster-nodes.txt", "node[1-9]")
    assert "  node[3-9]      7  did not answer" in page(bundle).splitlines()


def test_a_login_host_alone_says_why():
    text = page(recorded("queue-is-full.txt", "1"))
    assert "toolkit read the facts above on the login host; compute nodes: no node answered" in text


def test_a_machine_without_slurm_has_no_table():
    assert page(read((EVIDENCE / "no-slurm.txt").read_text(), "here", NodeChoice("0"))) == ""


def test_what_looks_alike_and_is_not_is_said():
    bundle = recorded("virtual-cluster-nodes.txt", "all")
    group = bundle.groups[1]
    mpis = tuple(msgspec.structs.replace(m, needs=()) for m in group.facts.mpis or ())
    other = msgspec.structs.replace(
        group, facts=msgspec.structs.replace(group.facts, mpis=mpis), differs=("mpis",)
    )
    bundle = msgspec.structs.replace(bundle, groups=(bundle.groups[0], other))
    assert "mpis: differs in details that this page does not show" in page(bundle)


def test_a_long_list_of_names_is_wrapped_beside_its_text():
    bundle = recorded("virtual-cluster-nodes.txt", "all")
    names = tuple(f"gpu{i}" for i in range(1, 60, 2))
    group = msgspec.structs.replace(bundle.groups[0], nodes=names)
    lines = page(msgspec.structs.replace(bundle, groups=(group,)), 80).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "as above" in lines[1]


def test_the_facts_show_networks_memory_and_gpus():
    host = recorded("virtual-cluster-nodes.txt", "all").host
    text = "\n".join(side_by_side(host, None, leave_unstyled, 100))
    assert "network    eth0" in text
    assert "4.4 GiB in /dev/shm, 8 MiB may be locked" in text
    many = msgspec.structs.replace(
        host, gpu_driver="550.54.15", gpus=("NVIDIA A100",) * 4, fabrics=("slingshot",)
    )
    text = "\n".join(side_by_side(many, None, leave_unstyled, 100))
    assert "4 \N{MULTIPLICATION SIGN} NVIDIA A100" in text
    assert "slingshot eth0" in text
