"""Test the parts of ``toolkit cluster`` that need no Docker engine."""

import contextlib
import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tests.unit.tables import every_row
from toolkit.cli.main import cli
from toolkit.cluster import virtual
from toolkit.errors import BadInput
from toolkit.run.docker.nodes import NodeContainer


def test_every_command_shows_an_example():
    for verb in ("up", "status", "list", "exec", "shell", "down"):
        shown = CliRunner().invoke(cli, ["cluster", verb, "--help"])
        assert f"Example: toolkit cluster {verb}" in shown.output


def test_help_lists_the_commands_without_an_engine(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    assert CliRunner().invoke(cli, ["cluster", "--help"]).exit_code == 0


@every_row(("address", "warned"), [("192.168.1.10:2222", True), ("127.0.0.1:2222", False)])
def test_a_cluster_that_other_machines_reach_is_warned_of(monkeypatch, address, warned):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    shown = CliRunner().invoke(cli, ["--quiet", "cluster", "up", "--listen", address])
    assert ("root on this machine" in shown.stderr) is warned


def clusters(monkeypatch, *names):
    asked = []
    monkeypatch.setattr(virtual, "names", lambda: names)
    monkeypatch.setattr(virtual, "down", lambda name, _: asked.append(name))
    shown = CliRunner().invoke(cli, ["cluster", "down"])
    return asked, shown


def test_the_default_name_is_demo(monkeypatch):
    assert clusters(monkeypatch, "other")[0] == ["demo"]


def test_a_cluster_of_the_former_default_name_is_found_with_a_warning(monkeypatch):
    asked, shown = clusters(monkeypatch, "virtual", "other")
    assert asked == ["virtual"]
    assert "write --name virtual" in shown.stderr


def test_no_cluster_is_removed_where_two_may_be_meant(monkeypatch):
    asked, shown = clusters(monkeypatch, "virtual", "demo")
    assert asked == []
    assert isinstance(shown.exception, BadInput)


def test_clusters_are_listed(monkeypatch):
    monkeypatch.setattr(virtual, "names", lambda: ("a", "demo"))
    assert CliRunner().invoke(cli, ["cluster", "list"]).stdout == "a\ndemo\n"
    shown = json.loads(CliRunner().invoke(cli, ["cluster", "list", "--json"]).stdout)
    assert shown == {"schema": "toolkit.clusters/1", "clusters": ["a", "demo"]}
    monkeypatch.setattr(virtual, "names", lambda: ())
    assert "toolkit cluster up" in CliRunner().invoke(cli, ["cluster", "list"]).stderr


def test_make_leaves_a_cluster_alone_that_it_did_not_make(monkeypatch):
    made = NodeContainer(name="toolkit-demo-login", state="running", labels={}, ports={})
    engine = SimpleNamespace(containers_with=lambda _: {made.name: made}, remove=pytest.fail)

    @contextlib.contextmanager
    def opened():
        yield engine

    monkeypatch.setattr(virtual, "open_nodes", opened)
    monkeypatch.setenv("TOOLKIT_CLONE", "0123456789ab")
    for verb in ("up", "down"):
        shown = CliRunner().invoke(cli, ["cluster", verb, "--name", "demo"])
        assert isinstance(shown.exception, BadInput)
        assert (
            "the cluster demo exists, but `make` in this clone did not create the cluster"
            in shown.exception.message
        )
