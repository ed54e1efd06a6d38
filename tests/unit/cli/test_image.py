"""Test the parts of ``toolkit image`` that need no Docker engine."""

import json

import pytest
from click.testing import CliRunner

from tests.services.program import ROOT
from tests.unit.tables import every_row
from toolkit.cli.image import command
from toolkit.errors import BadInput, ToolkitError


def run(*words):
    return CliRunner().invoke(command, words, catch_exceptions=False).stdout


def test_the_list_shows_the_recipes_and_what_is_in_them():
    assert "tf2.15-cpu 2.15.1 0.28.1 openmpi 4.1.4" in [
        " ".join(r.split()[:5]) for r in run("list").splitlines()
    ]
    rows = json.loads(run("list", "--json"))
    assert rows["schema"] == "toolkit.recipes/1"
    assert {"mpi-only", "tf2.15-cpu"} <= {row["name"] for row in rows["recipes"]}


def test_a_recipe_of_the_person_is_listed_and_its_fault_told(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "toolkit" / "recipes"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text("base = 3")
    (row,) = [r for r in json.loads(run("list", "--json"))["recipes"] if r["name"] == "mine"]
    assert "mine.toml:1: " in row["error"]


def test_a_recipe_that_is_used_in_place_of_a_shipped_one_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "toolkit" / "recipes"
    folder.mkdir(parents=True)
    own, lock = folder / "mpi-only.toml", folder / "mpi-only.lock.json"
    shipped = ROOT / "recipes" / own.name

    def said():
        (row,) = [r for r in json.loads(run("list", "--json"))["recipes"] if r["name"] == "mpi-only"]
        listed = "your own, replaces the shipped recipe" in " ".join(run("list").split())
        return row["overrides"], listed, json.loads(run("show", "mpi-only", "--json"))["overrides"]

    own.write_bytes(shipped.read_bytes())
    assert said() == ("", False, [])
    own.write_text(shipped.read_text().replace("to try a cluster with", "EVIL"))
    lock.write_text("{}")
    assert said() == (str(own), True, [str(own), str(lock)])
    for file in (own, lock):
        assert f"  {file} replaces the shipped {file.name}" in run("show", "mpi-only").splitlines()


def test_a_recipe_is_shown_in_words_and_as_json():
    lines = [" ".join(line.split()) for line in run("show", "tf2.15-cpu").splitlines()]
    assert "horovod * 0.28.1, mpi + gloo" in lines
    assert "tensorflow 2.15.* 2.15.1" in lines
    shown = json.loads(run("show", "tf2.15-cpu", "--json"))
    assert shown["schema"] == "toolkit.shown/1"
    assert shown["recipe"]["want"]["openmpi"] == "match-host"
    assert {"component": "openmpi", "version": "4.1.4"}.items() <= shown["solution"]["chosen"][2].items()


def test_a_recipe_that_is_not_built_everywhere_says_so():
    assert "not built by toolkit: PyPI has no TensorFlow wheel for ppc64le" in run("show", "tf2.15-ppc64le")
    (row,) = [line for line in run("list").splitlines() if line.startswith("tf2.15-ppc64le")]
    assert row.endswith("(not built by toolkit)")


def test_a_recipe_that_nothing_satisfies_is_listed_with_its_contradiction(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "toolkit" / "recipes"
    folder.mkdir(parents=True)
    text = (ROOT / "recipes" / "tf2.15-cpu.toml").read_text().replace("2.15.*", "2.0.*")
    (folder / "mine.toml").write_text(text)
    (row,) = [r for r in json.loads(run("list", "--json"))["recipes"] if r["name"] == "mine"]
    assert row["error"].startswith("mine: no stack satisfies all of these constraints: tensorflow = ")
    assert row["want"]["tensorflow"] == "2.0.*"


def test_the_dockerfile_is_the_one_that_people_have_read():
    assert run("render", "tf2.15-cpu") == (ROOT / "tests" / "golden" / "tf2.15-cpu.Dockerfile").read_text()


def test_a_place_that_takes_no_folder_is_told_before_anything_is_fetched(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr("toolkit.cli.image.render.fetch_files", refuse)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", "/proc/new"):
        words = ["render", "tf2.15-cpu", "-o", str(place)]
        with pytest.raises(BadInput, match=f"^-o: {place}"):
            CliRunner().invoke(command, words, obj={"verbose": 0, "quiet": 0}, catch_exceptions=False)


@every_row("verb", ["show", "render", "build", "sif"])
def test_a_recipe_that_is_not_there_is_refused_before_anything_else(verb):
    with pytest.raises(BadInput, match="recipe 'nope': not found"):
        run(verb, "nope")


def test_an_image_that_cannot_be_read_leaves_no_folder(tmp_path):
    (tmp_path / "cut.sif").write_bytes(b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\0")
    folder = tmp_path / "out"
    words = ["adopt", str(tmp_path / "cut.sif"), "-o", str(folder)]
    with pytest.raises(ToolkitError, match=r"cut\.sif"):
        CliRunner().invoke(command, words, obj={"verbose": 0, "quiet": 0}, catch_exceptions=False)
    assert not folder.exists()


def test_an_image_that_is_not_here_is_told_without_a_registry(tmp_path):
    words = ["push", str(tmp_path / "no.sif"), "oras://registry.invalid/ml/tf:1"]
    with pytest.raises(BadInput, match=r"no\.sif: No such file"):
        CliRunner().invoke(command, words, obj={"verbose": 0, "quiet": 0}, catch_exceptions=False)


CUT = b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0") + b"SIF_MAGIC\0"


@every_row("content", [b"", CUT, b"hsqs", b"no image"])
@every_row("verb", ["inspect", "verify", "adopt"])
def test_a_file_that_cannot_be_read_as_an_image_is_a_bad_file(tmp_path, content, verb):
    file = tmp_path / "a.sif"
    file.write_bytes(content)
    with pytest.raises(ToolkitError) as caught:
        CliRunner().invoke(command, [verb, str(file)], obj={"verbose": 0, "quiet": 0}, catch_exceptions=False)
    assert caught.value.code == 2
    assert str(file) in caught.value.message
