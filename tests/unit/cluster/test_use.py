"""How a person gets onto a node."""

from pathlib import Path

import pytest

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


def test_a_node_that_the_cluster_has_not_is_refused_with_those_that_it_has():
    with pytest.raises(BadInput, match="--node node3: the cluster demo has login, node1, node2"):
        shell_words(CLUSTER, "node3", "ada")
