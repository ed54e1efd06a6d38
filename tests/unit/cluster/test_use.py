"""Test how users log in to a node."""

from pathlib import Path

import msgspec
import pytest

from tests.unit.tables import every_row
from toolkit.cluster.use import shell_words
from toolkit.errors import BadInput
from toolkit.model.cluster import Cluster

CLUSTER = Cluster(name="demo", nodes=2, ssh_config=Path("/a b/ssh_config"))


def test_a_shell_comes_by_ssh(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert shell_words(CLUSTER, "node1", "ada") == ("ssh", "-t", "-F", "/a b/ssh_config", "node1")


def test_root_and_machines_without_ssh_come_by_docker(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    for user in ("ada", "root"):
        words = shell_words(CLUSTER, "login", user)
        assert (words[:2], words[-3:]) == (("docker", "exec"), ("toolkit-demo-login", "bash", "-l"))


def test_a_learner_comes_by_the_own_key(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    cluster = msgspec.structs.replace(CLUSTER, users=3)
    words = shell_words(cluster, "login", "user03")
    assert words == ("ssh", "-t", "-F", "/a b/users/user03/ssh_config", "login")
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "/home/user03" in shell_words(cluster, "login", "user03")


@every_row(
    ("users", "known", "fix"),
    [
        (0, "has ada, root", "create user01 to user20: `toolkit cluster up --name demo --users 20`"),
        (3, "has ada, root, user01 to user03", ""),
    ],
)
def test_a_user_that_the_cluster_has_not_is_refused_with_those_that_it_has(users, known, fix):
    with pytest.raises(BadInput, match="--user user04: no such user; the cluster demo") as caught:
        shell_words(msgspec.structs.replace(CLUSTER, users=users), "login", "user04")
    assert caught.value.message.endswith(known)
    assert caught.value.fix == fix


def test_a_node_that_the_cluster_has_not_is_refused_with_those_that_it_has():
    with pytest.raises(
        BadInput, match="--node node3: no such node; the cluster demo has login, node1, node2"
    ):
        shell_words(CLUSTER, "node3", "ada")
