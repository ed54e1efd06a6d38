"""Test which host toolkit connects to."""

import pytest

from tests.unit.tables import every_row
from toolkit.cluster import virtual
from toolkit.cluster.access import Access, new_secrets
from toolkit.errors import BadInput, Lost, Missing
from toolkit.job.places import open_runner
from toolkit.model.cluster import Cluster
from toolkit.run.remote import ssh


@pytest.fixture
def access(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Access("demo")


@pytest.fixture
def opened(monkeypatch):
    """Return the lists of opened connections and of faults; each connection raises the next fault, if any."""
    configs, faults = [], []

    def connect(host, config, place):
        configs.append((host, config, place))
        if faults:
            raise faults.pop(0)

    monkeypatch.setattr(ssh, "SshRunner", connect)
    return configs, faults


@pytest.fixture
def asked(access, monkeypatch):
    """Return the names of virtual clusters that toolkit looked up."""
    names = []

    def find(name):
        names.append(name)
        return Cluster(name=name, nodes=2, ssh_config=access.ssh_config)

    monkeypatch.setattr(virtual, "find", find)
    return names


def test_a_virtual_cluster_that_answers_is_reached_without_docker(access, opened, asked):
    access.keep(new_secrets())
    access.point_at(2201, 2)
    open_runner(None, "demo")
    assert opened[0] == [("login", access.ssh_config, "cluster demo")]
    assert asked == []


@every_row("fault", [Lost("refused"), Missing("its host key has changed")])
def test_docker_says_where_a_virtual_cluster_is_that_does_not_answer(access, opened, asked, fault):
    access.keep(new_secrets())
    access.point_at(2201, 2)
    configs, faults = opened
    faults.append(fault)
    open_runner(None, "demo")
    assert asked == ["demo"]
    assert len(configs) == 2


def test_docker_is_asked_for_a_virtual_cluster_without_files(opened, asked):
    open_runner(None, "demo")
    assert asked == ["demo"]
    assert len(opened[0]) == 1


def test_a_configuration_that_the_user_gives_is_the_only_one(access, opened, asked, tmp_path):
    config = tmp_path / "config"
    config.write_text("Host login\n")
    configs, faults = opened
    faults.append(Missing("away"))
    with pytest.raises(Missing):
        open_runner(None, "demo", config)
    assert configs == [("login", config, "cluster demo")]
    assert asked == []


@every_row("name", ["../demo", "", "Demo"])
def test_a_name_that_no_cluster_can_have_is_refused(opened, asked, name):
    with pytest.raises(BadInput):
        open_runner(None, name)
    assert opened[0] == []
