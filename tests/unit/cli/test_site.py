"""Test the output of ``toolkit site list``, ``show`` and ``check``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.tables import every_row
from toolkit.cli import site as module
from toolkit.errors import BadInput
from toolkit.knowledge import sites
from toolkit.probe.probe import load
from toolkit.run.command import Completed

EVIDENCE = Path(__file__).parents[2] / "evidence" / "virtual-cluster-site.txt"
MINE = """\
schema = "toolkit.site/1"
title = "Mine"
[[partitions]]
name = "debug"
memory_mb = 8783
"""


@pytest.fixture
def own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "toolkit" / "sites"
    folder.mkdir(parents=True)
    return folder


def run(*words):
    return CliRunner().invoke(module.command, words, catch_exceptions=False)


def test_the_list_is_for_people_and_programs(own):
    (own / "mine.toml").write_text(MINE)
    listed = json.loads(run("list", "--json").stdout)
    assert listed["schema"] == "toolkit.sites/1"
    rows = {row["name"]: row for row in listed["sites"]}
    assert {"juwels", "polaris", "virtual", "mine"} <= set(rows)
    polaris = {"title": "Polaris", "scheduler": "pbs", "launcher": "pals", "tested": "rendered", "own": False}
    polaris |= {"name": "polaris", "architecture": "x86_64"}
    polaris |= {"centre": "Argonne Leadership Computing Facility"}
    assert rows["polaris"] == polaris
    assert rows["mine"]["own"]
    shown = run("list").stdout
    assert "Mine (yours)" in shown
    assert "JUWELS Cluster, Jülich Supercomputing Centre" in shown


def test_a_damaged_profile_is_told_and_hides_no_other(own):
    (own / "broken.toml").write_text("title = 3")
    done = CliRunner().invoke(module.command, ["list"])
    assert isinstance(done.exception, BadInput)
    assert "broken.toml:1" in done.exception.message
    assert "juwels" in done.stdout


@every_row(
    ("said", "shown"), [("", "?"), ("gpus = 0", "-"), ("gpus = 4", "4"), ('gpus = 4\ngpu = "v100"', "4 v100")]
)
def test_gpus_that_nobody_stated_are_unknown_and_not_none(own, said, shown):
    (own / "mine.toml").write_text(f"{MINE}{said}\n")
    row = next(line for line in run("show", "mine").stdout.splitlines() if "8783" in line)
    assert row.split(maxsplit=6)[6].rsplit(maxsplit=1)[0] == shown


@every_row("name", [*sites.names(), "example"])
def test_every_profile_is_shown(name):
    text = run("show", name).stdout
    site = sites.site(name)
    assert text.startswith(f"{name}: {site.title}")
    for part in site.partitions:
        assert part.name in text
    assert site.sources[0] in text
    told = json.loads(run("show", name, "--json").stdout)
    assert (told["name"], told["schema"]) == (name, "toolkit.site/1")
    assert run("show", name, "--toml").stdout == sites.find(name).read_text()


def test_what_differs_ends_in_1_with_a_line_each(own):
    (own / "mine.toml").write_text(MINE)
    done = run("check", "--facts", str(EVIDENCE))
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].startswith("mine on ")
    (own / "mine.toml").write_text(MINE.replace("8783", "9000").replace('"debug"', '"debug"\ngpus = 4'))
    done = run("check", "mine", "--facts", str(EVIDENCE))
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert "differs    partitions[0].memory_mb: debug: memory mb 9000; the cluster has 8783" in lines
    assert "differs    partitions[0].gpus: debug: gpus 4; the cluster has 0" in lines
    told = run("check", "mine", "--facts", str(EVIDENCE), "--json")
    assert told.exit_code == 1
    answer = json.loads(told.stdout)
    assert (answer["schema"], answer["site"], answer["holds"]) == ("toolkit.site-check/1", "mine", False)
    assert {"field", "state", "text"} == set(answer["points"][0])


def test_words_that_were_asked_for_another_profile_decide_nothing(own):
    (own / "mine.toml").write_text(MINE.replace("[[", 'modules = ["gcc/1"]\n[['))
    assert (
        "undecided  modules[0]: gcc/1: toolkit did not try to load this module"
        in run("check", "--facts", str(EVIDENCE)).stdout
    )


def test_the_cluster_is_asked_where_the_profile_says(own, monkeypatch):
    (own / "mine.toml").write_text(MINE.replace("[[", 'host = "me@login"\nscratch = "/nvme"\n[['))
    opened = []

    class Place:
        place = "me@login"

        def run(self, command):
            opened.append(command.stdin)
            return Completed(command, 0, EVIDENCE.read_bytes(), b"")

        def close(self):
            opened.append("closed")

    monkeypatch.setattr(module, "open_runner", lambda *words: opened.append(words) or Place())
    run("check")
    assert opened[0] == ("me@login", None, None)
    assert b"TOOLKIT_FOLDERS=/nvme" in opened[1]
    assert opened[2] == "closed"
    run("check", "--cluster", "x")
    assert opened[3] == (None, "x", None)


def test_which_profile_has_to_be_told_where_there_are_several(own):
    with pytest.raises(BadInput, match=r"NAME is missing; choices: archer2, aurora, biohpc"):
        run("check")
    (own / "a.toml").write_text(MINE)
    (own / "b.toml").write_text(MINE)
    with pytest.raises(BadInput, match=r"NAME is missing; choices: a, b"):
        run("check")


def test_facts_and_a_place_exclude_each_other(own):
    with pytest.raises(BadInput, match="--facts"):
        run("check", "virtual", "--facts", str(EVIDENCE), "--host", "x")


def test_facts_are_shared_without_a_profile(own, tmp_path):
    file = tmp_path / "shared.json"
    done = run("share", "--facts", str(EVIDENCE), "-o", str(file))
    assert done.stdout.startswith(f"Wrote {file}: the facts of cluster, without")
    assert load(file).place == "cluster"


def test_the_page_of_a_profile_lists_silenced_findings(own):
    (own / "mine.toml").write_text(f'{MINE}\n[silence]\nshared-memory-small = "known"\n')
    assert "shared-memory-small (known)" in run("show", "mine").stdout


def test_shared_facts_are_facts(own, tmp_path):
    (own / "mine.toml").write_text(MINE)
    file = tmp_path / "shared.json"
    done = run("share", "--facts", str(EVIDENCE), "-o", str(file))
    assert (
        done.stdout
        == f"Wrote {file}: the facts of mine, without accounts, machine names and users' folders\n"
    )
    assert run("share", "mine", "--facts", str(EVIDENCE)).stdout == file.read_text()
    assert run("check", "mine", "--facts", str(file)).exit_code == 0
