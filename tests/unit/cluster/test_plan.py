"""Test the plan of a cluster: its containers, networks and volumes."""

import pytest

from tests.unit.tables import every_row
from toolkit.cluster.plan import LISTEN, Layout, check_listen, check_name, check_nodes, check_users
from toolkit.errors import BadInput
from toolkit.run.docker.nodes import configuration

GIB = 1 << 30
LAYOUT = Layout("demo", 2, cpus=4, memory=16 * GIB)


@every_row("name", ["", "Demo", "1st", "-x", "a_b", "a b", "a/b", "ä", "a" * 32, "a\n"])
def test_a_name_that_cannot_stand_in_host_names_is_refused(name):
    with pytest.raises(BadInput, match="cannot be the name of a cluster") as caught:
        check_name(name)
    assert "lower-case letters" in caught.value.fix


@every_row("name", ["a", "demo", "course-2026", "a" * 31])
def test_a_short_plain_name_is_taken(name):
    assert check_name(name) == name


@every_row("nodes", [0, -1, 17])
def test_a_number_of_nodes_that_makes_no_sense_is_refused(nodes):
    with pytest.raises(BadInput, match=f"1 to 16 compute nodes, not {nodes}"):
        check_nodes(nodes)


def test_two_clusters_share_no_name():
    one, two = (Layout(name, 1, 1, GIB) for name in ("one", "two"))
    names = [{x.network, *x.volumes, *(x.container(h) for h in x.hosts)} for x in (one, two)]
    assert not names[0] & names[1]
    assert one.labels != two.labels


def test_all_nodes_together_leave_memory_to_the_host():
    assert sum(LAYOUT.memory_of(host) for host in LAYOUT.hosts) < LAYOUT.memory


def test_slurm_is_told_of_less_memory_than_the_node_has():
    offered = LAYOUT.slurm()["memory_mb"]
    assert offered << 20 == LAYOUT.memory_of("node1") - (256 << 20)


def test_a_small_host_still_gives_each_node_enough_to_start():
    assert Layout("tiny", 16, 1, GIB).memory_of("node1") == 512 << 20


@every_row(("nodes", "written"), [(1, "node1"), (3, "node[1-3]")])
def test_nodes_are_listed_as_slurm_writes_them(nodes, written):
    assert Layout("demo", nodes, 1, GIB).slurm()["node_list"] == written


def test_a_node_is_never_privileged_and_never_published_to_others():
    asked = configuration(LAYOUT.machine("login", "image"))
    host = asked["HostConfig"]
    assert "Privileged" not in host
    assert "CapAdd" not in host
    assert "/sys/firmware" in host["MaskedPaths"]
    assert host["PortBindings"] == {"22/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]}
    assert host["Memory"] == host["MemorySwap"] == LAYOUT.memory_of("login")


def test_compute_nodes_publish_nothing():
    asked = configuration(LAYOUT.machine("node1", "image"))
    assert (asked["ExposedPorts"], asked["HostConfig"]["PortBindings"]) == ({}, {})
    assert asked["NetworkingConfig"]["EndpointsConfig"]["toolkit-demo"]["Aliases"] == ["node1"]


@every_row("users", [-1, 100])
def test_a_number_of_users_that_has_no_names_is_refused(users):
    with pytest.raises(BadInput, match=f"0 to 99 users, not {users}"):
        check_users(users)


@every_row("users", [0, 1, 99])
def test_a_class_is_taken(users):
    assert check_users(users) == users


@every_row(
    "listen",
    ["", "2222", "0.0.0.0:2222", "192.168.1.10", "192.168.1.10:", "192.168.1.10:22", "192.168.1.10:65536",
     "login:2222", "192.168.1.10:2222:1", "192.168.1.10:x", "::1:2222", "1.2.3.4:2222\n"],
)  # fmt: skip
def test_what_a_class_cannot_be_told_is_refused(listen):
    with pytest.raises(BadInput, match="expected an IPv4 address of this machine and a port") as caught:
        check_listen(listen)
    assert "192.168.1.10:2222" in caught.value.fix


def test_a_cluster_for_a_class_is_published_where_it_was_asked_for_and_remembers_it():
    layout = Layout("demo", 2, 4, GIB, listen=check_listen("192.168.1.10:2222"))
    asked = configuration(layout.machine("login", "image"))
    published = asked["HostConfig"]["PortBindings"]
    assert published == {"22/tcp": [{"HostIp": "192.168.1.10", "HostPort": "2222"}]}
    assert asked["Labels"][LISTEN] == "192.168.1.10:2222"
    assert layout.address == "192.168.1.10"
    assert LISTEN not in LAYOUT.labels
    assert LAYOUT.address == "127.0.0.1"
