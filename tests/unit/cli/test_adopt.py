"""Test ``toolkit image adopt`` in a folder that already has files."""

import json

import pytest
from click.testing import CliRunner

from tests.unit.disks import fill
from tests.unit.image.sifs import elf, sandbox
from tests.unit.tables import every_row
from toolkit.cli.image import command
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.builds import layering

QUIET = {"verbose": False, "quiet": True}


@pytest.fixture
def adopt(tmp_path):
    sandbox(tmp_path / "theirs", {"/etc/os-release": "ID=debian\n", "/bin/sh": "shell"})

    def call(*words):
        told = ["adopt", str(tmp_path / "theirs"), "-o", str(tmp_path / "out"), *words]
        return CliRunner().invoke(command, told, obj=QUIET, catch_exceptions=False)

    return call


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_was_written_is_written_again(adopt, tmp_path):
    for _ in range(2):
        assert adopt().exit_code == 0
        assert sorted(contents(tmp_path / "out")) == ["adopted.json", "theirs.toml"]
        assert json.loads((tmp_path / "out" / "adopted.json").read_text())["schema"] == "toolkit.adopted/1"
        assert (tmp_path / "out" / "theirs.toml").read_text().startswith("# Made by toolkit image adopt")


@every_row("name", ["theirs.toml", "adopted.json"])
@every_row("text", ["my own", ""])
def test_a_file_of_ones_own_stays_and_is_told_before_any_work(adopt, tmp_path, monkeypatch, name, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text(text)
    monkeypatch.setattr("toolkit.cli.image.adopt.open_image", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(BadInput, match=f"{name} exists, and toolkit did not write it") as told:
        adopt()
    assert "-o" in told.value.fix
    assert contents(tmp_path / "out") == {name: text.encode()}


def test_one_whose_first_line_was_taken_away_is_ones_own(adopt, tmp_path):
    adopt()
    file = tmp_path / "out" / "theirs.toml"
    file.write_text(file.read_text().partition("\n")[2])
    with pytest.raises(BadInput, match=r"theirs\.toml exists"):
        adopt()


def test_a_folder_or_a_link_to_nothing_in_its_place_is_told(adopt, tmp_path):
    file = tmp_path / "out" / "theirs.toml"
    file.mkdir(parents=True)
    with pytest.raises(BadInput, match=r"theirs\.toml exists"):
        adopt()
    file.rmdir()
    file.symlink_to("nowhere")
    with pytest.raises(BadInput, match=r"theirs\.toml exists"):
        adopt()
    assert file.is_symlink()


def test_a_full_disk_leaves_what_was_written_before(adopt, tmp_path, monkeypatch):
    adopt()
    before = contents(tmp_path / "out")
    fill(monkeypatch)
    with pytest.raises(CheckFailed, match=r"adopted\.json: cannot be written: No space left"):
        adopt()
    assert contents(tmp_path / "out") == before


@every_row("name", ["Dockerfile", "lib/mine.py"])
def test_a_folder_of_ones_own_in_the_place_of_the_layers_stays(adopt, tmp_path, name):
    file = tmp_path / "out" / "layer" / name
    file.parent.mkdir(parents=True)
    file.write_text("FROM scratch\n")
    with pytest.raises(BadInput, match=r"out/layer.* exists, and toolkit did not write it"):
        adopt("--layer")
    assert contents(tmp_path / "out") == {f"layer/{name}": b"FROM scratch\n"}


def test_no_layer_is_built_on_a_python_that_is_too_old_for_the_trainers(adopt, tmp_path):
    files = {"/usr/bin/python3": "->python3.8", "/usr/bin/python3.8": elf()}
    sandbox(tmp_path / "theirs", files)
    with pytest.raises(
        BadInput, match=r"theirs: its Python is 3\.8 \(.*\), but the trainers need 3\.11"
    ) as told:
        adopt("--layer")
    assert "your own program" in told.value.fix
    assert sorted(contents(tmp_path / "out")) == ["adopted.json", "theirs.toml"]


def test_the_context_of_a_layer_is_written_over_an_earlier_one(tmp_path):
    for folder in (tmp_path / "new", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        for identity in ("sha256:1", "sha256:2"):
            layering.require_folder(folder, "")
            layering.write(layering.context("theirs", identity, "ada"), folder)
            assert f"FROM {identity}\n" in (folder / "Dockerfile").read_text()
