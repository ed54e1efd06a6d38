"""Test the output of ``toolkit image solve``."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolkit.cli.image import command
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.locks.recipe import load

CLUSTER = str(Path(__file__).parents[2] / "evidence" / "virtual-cluster-login.txt")
DESERT = str(Path(__file__).parents[2] / "evidence" / "no-slurm.txt")
BAD = """
schema = "toolkit.recipe/2"
title = "t"

[want]
tensorflow = "2.15.*"
python = "3.13"
openmpi = "*"
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*words):
    return CliRunner().invoke(command, ["solve", *words])


def test_a_table_says_version_provider_and_reason():
    result = run("tf2.15-cpu")
    assert result.exit_code == 0, result.output
    assert [line.split()[:3] for line in result.stdout.splitlines() if line.startswith("tensorflow")] == [
        ["tensorflow", "2.15.1", "pypi"]
    ]
    assert "the recipe wants 2.15.*; the newest version that fits" in " ".join(result.stdout.split())
    assert "predicted to start" not in result.stdout


def test_with_facts_it_names_the_way_of_launching():
    result = run("tf2.15-cpu", "--facts", CLUSTER)
    assert result.stdout.endswith(
        "toolkit predicts that this image starts on the cluster in launch mode srun-pmix.\n"
    )


def test_the_json_is_the_solution_with_its_sources():
    told = json.loads(run("tf2.15-cpu", "--facts", CLUSTER, "--json").stdout)
    assert (told["schema"], told["recipe"], told["mode"]) == ("toolkit.solution/1", "tf2.15-cpu", "srun-pmix")
    assert all(chosen["why"] and chosen["source"] for chosen in told["chosen"])


def test_a_contradiction_ends_with_1_and_says_what_each_line_costs():
    Path("bad.toml").write_text(BAD)
    result = run("./bad.toml")
    error = result.exception
    assert isinstance(error, CheckFailed)
    assert error.message == (
        'bad: no stack satisfies all of these constraints: tensorflow = "2.15.*"; python = "3.13"'
    )
    assert [line for line in error.detail if line.startswith("without ")]
    assert "because tensorflow 2.15.1 and 2.15.0 work only with python 3.9, 3.10 or 3.11" in error.detail


def test_a_contradiction_as_json_ends_with_1_too():
    Path("bad.toml").write_text(BAD)
    result = run("./bad.toml", "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["schema"] == "toolkit.conflict/1"
    assert told["constraints"] == ['tensorflow = "2.15.*"', 'python = "3.13"']
    assert len(told["relax"]) == 2


def test_a_cluster_that_starts_nothing_is_the_contradiction():
    error = run("mpi-only", "--facts", DESERT).exception
    assert isinstance(error, CheckFailed)
    assert "the cluster (" in error.message
    assert any("Slurm is not installed on this machine" in line for line in error.detail)


def test_a_recipe_of_these_versions_is_written_and_gives_them_without_the_cluster():
    result = run("tf2.15-cpu", "--facts", CLUSTER, "-o", "mine.toml")
    assert result.exit_code == 0, result.output
    assert load("./mine.toml").recipe.want["tensorflow"] == "2.15.1"
    first, second = (json.loads(run(*words, "--json").stdout) for words in (["tf2.15-cpu"], ["./mine.toml"]))
    assert [c["version"] for c in first["chosen"]] == [c["version"] for c in second["chosen"]]
    again = run("tf2.15-cpu", "--facts", CLUSTER, "-o", "mine.toml")
    assert again.exit_code == 0


def test_a_file_of_somebody_is_not_written_over():
    Path("mine.toml").write_text("mine = 1\n")
    error = run("tf2.15-cpu", "-o", "mine.toml").exception
    assert isinstance(error, BadInput)
    assert Path("mine.toml").read_text() == "mine = 1\n"


def test_facts_that_are_none_are_refused():
    Path("facts.json").write_text("{")
    assert isinstance(run("tf2.15-cpu", "--facts", "facts.json").exception, BadInput)
    assert isinstance(run("tf2.15-cpu", "--facts", "none.json").exception, BadInput)


def test_a_site_stands_for_the_facts_beside_its_profile(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "toolkit" / "sites"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('schema = "toolkit.site/1"\ntitle = "Mine"\n')
    missing = run("tf2.15-cpu", "--site", "mine").exception
    assert isinstance(missing, Missing)
    assert "mine.facts.json does not exist" in missing.message
    shutil.copy(CLUSTER, folder / "mine.facts.json")
    assert run("tf2.15-cpu", "--site", "mine").stdout == run("tf2.15-cpu", "--facts", CLUSTER).stdout


def test_facts_and_a_site_at_once_are_refused():
    refused = run("tf2.15-cpu", "--site", "mine", "--facts", CLUSTER).exception
    assert isinstance(refused, BadInput)
    assert "cannot be combined" in refused.message
