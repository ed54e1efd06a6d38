"""Test ``toolkit probe`` with the recorded answer of a host."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolkit.cli import probe
from toolkit.errors import BadInput
from toolkit.run.command import Completed

EVIDENCE = Path(__file__).parents[2] / "evidence"


class Place:
    place = "ada@login.example.org"

    def __init__(self, name: str) -> None:
        self.answer = (EVIDENCE / name).read_bytes()
        self.words: tuple[str, ...] = ()
        self.closed = False

    def run(self, command):
        self.words = command.words
        return Completed(command, 0, self.answer, b"")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def asked(monkeypatch):
    def ask(name, *words):
        place = Place(name)
        monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: place)
        done = CliRunner().invoke(probe.command, words, catch_exceptions=False)
        assert place.closed
        return place, done.output

    return ask


def test_one_node_is_asked_by_default_in_one_command(asked):
    place, text = asked("virtual-cluster-nodes.txt")
    assert place.words == ("sh", "-s", "1", "5")
    assert text.startswith("login.example.org\n")
    assert "Machines" in text


def test_options_reach_the_place(asked):
    place, _ = asked("virtual-cluster-nodes.txt", "--nodes", "all", "--wait", "30", "--partition", "gpu")
    assert place.words == ("sh", "-s", "all", "30", "gpu")
    place, text = asked("virtual-cluster-login.txt", "--nodes", "0")
    assert place.words == ("sh", "-s")
    assert "toolkit did not probe these nodes" in " ".join(text.split())


def test_the_view_is_printed_and_every_machine_is_saved(asked, tmp_path):
    file = tmp_path / "facts.json"
    _, text = asked("virtual-cluster-nodes.txt", "--nodes", "all", "--json", "-o", str(file))
    saved = json.loads(file.read_text())
    assert json.loads(text) == saved["host"]
    assert [group["nodes"] for group in saved["groups"]] == [["node1"], ["node2"]]
    assert saved["login"]["compute_nodes"] is None
    assert "ada" not in file.read_text().replace("adaptive", "")


def test_a_file_that_was_saved_is_named_and_the_machines_shown(asked, tmp_path):
    _, text = asked("virtual-cluster-nodes.txt", "-o", str(tmp_path / "f.json"))
    assert text.startswith(f"Wrote {tmp_path / 'f.json'}, the facts of login.example.org\nMachines\n")


def test_wrong_lists_of_nodes_are_refused_before_the_place_is_opened():
    with pytest.raises(BadInput, match="--nodes"):
        CliRunner().invoke(probe.command, ["--nodes", "a b"], catch_exceptions=False)
