"""Test ``toolkit init`` with the recorded answer of a host."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.tables import every_row
from toolkit.cli import init
from toolkit.errors import BadInput, Missing
from toolkit.knowledge import sites
from toolkit.probe.probe import load
from toolkit.run.command import Completed

EVIDENCE = Path(__file__).parents[2] / "evidence"
RECORDED = (EVIDENCE / "virtual-cluster-site.txt").read_text()
TWO = RECORDED.replace(
    "|debug*|2|up|2|8783|(null)|infinite|1-infinite|2|1|1",
    "|cpu|2|up|2|8783|(null)|infinite|1-infinite|2|1|1\n|gpu|2|up|2|8783|gpu:4|12:00:00|1-2|2|1|1",
)


class Place:
    place = "ada@login.example.org"

    def __init__(self, answer: str) -> None:
        self.answer = answer.encode()
        self.asked = b""
        self.words: list[tuple[str, ...]] = []

    def run(self, command):
        self.asked = command.stdin
        self.words.append(command.words)
        return Completed(command, 0, self.answer, b"")

    def close(self) -> None: ...


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def call(*words, answer=RECORDED, typed=None):
        place = Place(answer)
        monkeypatch.setattr(init, "open_runner", lambda *_: place)
        monkeypatch.setattr(init, "_is_interactive", lambda: typed is not None)
        done = CliRunner().invoke(init.command, words, input=typed, catch_exceptions=False)
        assert b"TOOLKIT_SITE=yes" in place.asked
        done.words = place.words
        return done

    return call


def test_the_next_command_reaches_the_same_place(run, tmp_path):
    config = str(tmp_path / "my config")
    done = run("--yes", "--host", "login", "--ssh-config", config)
    assert f" --host login --ssh-config '{config}'" in done.stdout.splitlines()[-1]


def test_a_profile_is_written_and_found_by_its_name_with_its_facts(run, tmp_path):
    done = run("--yes")
    assert done.exit_code == 0
    file = tmp_path / "toolkit" / "sites" / "test-f2af6c.toml"
    assert done.stdout.startswith(f"Wrote {file}, the profile of test-f2af6c, and a facts file beside it\n")
    assert sites.find("test-f2af6c") == file
    site = sites.site("test-f2af6c")
    assert site.partitions[0].memory_mb == 8783
    assert load(sites.facts_file("test-f2af6c")).slurm is not None
    assert not [path for path in file.parent.iterdir() if path.name.startswith(".")]


def test_a_profile_that_is_there_is_kept(run):
    run("--yes")
    kept = sites.find("test-f2af6c").read_text()
    for words in (["--yes"], ["--yes", "--name", "test-f2af6c"]):
        with pytest.raises(BadInput, match="already exists"):
            run(*words, "--directory", "/other")
    assert sites.find("test-f2af6c").read_text() == kept
    run("--yes", "--force", "--directory", "/other")
    assert sites.site("test-f2af6c").directory == "/other"


@every_row("there", ["mine.facts.json", "mine.toml"])
def test_a_file_beside_that_is_somebodys_is_kept(run, tmp_path, monkeypatch, there):
    (tmp_path / there).write_text("saved before")
    monkeypatch.setattr(init, "open_runner", lambda *_: pytest.fail("the cluster was asked"))
    with pytest.raises(BadInput, match=f"{there} already exists") as told:
        CliRunner().invoke(init.command, ["--yes", "-o", str(tmp_path / "mine.toml")], catch_exceptions=False)
    assert told.value.fix.startswith("replace the file with `--force`")
    assert (tmp_path / there).read_text() == "saved before"
    assert len(list(tmp_path.glob("mine*"))) == 1
    run("--yes", "--force", "-o", str(tmp_path / "mine.toml"))
    assert load(tmp_path / "mine.facts.json").slurm is not None


def test_options_name_what_is_written_and_where(run, tmp_path):
    file = tmp_path / "here.toml"
    done = run("--yes", "--name", "mine", "--account", "p1", "-o", str(file), "--host", "login")
    site = sites.site(str(file))
    assert (site.title, site.defaults.account, site.host) == ("mine", "p1", "login")
    assert f"toolkit launch mnist --site {file} --host login\n" in done.stdout
    with pytest.raises(BadInput, match="expected the name of a TOML file"):
        CliRunner().invoke(init.command, ["-o", "here"], catch_exceptions=False)


def test_without_a_person_the_option_is_named(run):
    with pytest.raises(BadInput) as caught:
        run(answer=TWO)
    assert caught.value.message.startswith("--partition is missing, and standard input is not a terminal")
    assert caught.value.message.endswith("choices: cpu, gpu")
    assert caught.value.fix == "give --partition, or accept the default cpu with `--yes`"
    assert run("--partition", "gpu", answer=TWO).exit_code == 0
    assert sites.site("test-f2af6c").defaults.partition == "gpu"


def test_a_person_is_asked_what_the_cluster_does_not_tell_and_nothing_else(run):
    done = run(answer=TWO, typed="x\ngpu\n")
    assert "Slurm has no default partition; which partition do your jobs use (cpu, gpu) [cpu]" in done.stderr
    assert "'x' is not one of 'cpu', 'gpu'" in done.stderr
    assert sites.site("test-f2af6c").defaults.partition == "gpu"
    assert run("--name", "b", typed="").stderr == ""


def test_yes_takes_what_is_usual(run):
    assert run("--yes", answer=TWO).exit_code == 0
    assert sites.site("test-f2af6c").defaults.partition == "cpu"


@every_row("name", ["a b", "../x", "example", "x.toml"])
def test_names_that_no_profile_can_have_are_refused_before_anything_is_asked(name):
    with pytest.raises(BadInput, match="not a valid name for a site"):
        CliRunner().invoke(init.command, ["--name", name], catch_exceptions=False)


def test_a_machine_without_slurm_gets_no_profile(run, tmp_path):
    with pytest.raises(Missing, match="Slurm was not found"):
        run("--yes", answer=(EVIDENCE / "no-slurm.txt").read_text())
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_told_is_said(run):
    # The answer has only the login host and no compute node, as if the queue were full.
    alone = RECORDED[: RECORDED.index("toolkit-nodes/1")]
    done = run("--yes", answer=alone)
    assert "No compute node answered" in done.stderr
    assert "No compute node answered" in sites.site("test-f2af6c").notes


def test_where_slurm_has_no_default_partition_a_node_of_the_first_is_asked(run):
    alone = TWO[: TWO.index("toolkit-nodes/1")]
    assert run("--yes", answer=alone).words == [("sh", "-s", "1", "15"), ("sh", "-s", "1", "15", "cpu")]
    named = run("--yes", "--force", "--partition", "gpu", "--wait", "3", answer=alone)
    assert named.words == [("sh", "-s", "1", "3", "gpu")]
    assert len(run("--yes", "--force").words) == 1
