"""Test that toolkit reports a wrong file before it uses the network, the Docker engine or Slurm."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.unit.disks import fill
from tests.unit.image.sifs import DATA, sif
from tests.unit.tables import every_row
from toolkit.cli.main import main

NOWHERE = ("--host", "nowhere.invalid")


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    def refuse(*asked, **_more):
        raise AssertionError(f"asked: {asked}")

    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "good.sif").write_bytes(sif((DATA / "tiny.gzip").read_bytes()))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)


def answer(capsys, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1, said
    return int(ended.value.code or 0), said[0]


@every_row(
    "words",
    [
        ("image", "push", "g", "oras://nowhere.invalid/a:1"),
        ("image", "push", "g", "x/", "--host", "nowhere.invalid", "--facts"),
        ("image", "bundle", "./g", "-o", "b.tar"),
        ("image", "bundle", "tf2.15-cpu", "-o", "b.tar", "--sif", "g"),
        ("image", "bundle", "tf2.15-cpu", "-o", "."),
        ("image", "sif", "tf2.15-cpu", "-o", "/dev/null"),
        ("cluster", "up", "--flavour", "g"),
        ("doctor", "g", "--host", "nowhere.invalid"),
        ("doctor", "g", "--host", "nowhere.invalid", "--live", "--mode", "srun-pmix"),
        ("launch", "--host", "nowhere.invalid", "--image", "./g", "--", "true"),
        ("notebook", "--host", "nowhere.invalid", "--image", "./g"),
        ("scale", *NOWHERE, "--image", "./g", "--ranks", "1", "--pattern", "(x)", "--", "true"),
        ("probe", "--host", "nowhere.invalid", "--ssh-config", "g"),
        ("probe", "-o", "g"),
        ("image", "solve", "tf2.15-cpu", "--site", "./g"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_garbage_is_told_before_anybody_is_asked(capsys, words):
    Path("g").write_bytes(b"hello world\n")
    code, said = answer(capsys, *words)
    assert code == 2, said


@pytest.fixture
def no_files():
    """Create objects in the working folder that are not regular files."""
    os.mkfifo("fifo")
    os.mkfifo("fifo.sif")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket.sif")
    Path("dangling.sif").symlink_to("gone")
    Path("loop.sif").symlink_to("loop.sif")


@pytest.mark.usefixtures("no_files")
@every_row("there", ["fifo", "socket", "dangling", "loop", "/dev/null"])
@every_row("command", ["launch", "notebook"])
def test_something_else_than_a_file_is_no_image_that_is_elsewhere(capsys, there, command):
    image = there if there.startswith("/") else f"./{there}.sif"
    words = ("--", "true") if command == "launch" else ()
    code, said = answer(capsys, command, "--image", image, "--site", "virtual", "--dry-run", *words)
    assert (code, image.removeprefix("./") in said) == (2, True), said


def test_an_image_that_is_nowhere_is_still_taken_to_be_at_the_site(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["launch", "--image", "./no.sif", "--site", "virtual", "--dry-run", "--", "true"])
    assert ended.value.code == 0
    assert "not on this machine" in capsys.readouterr().err


@pytest.mark.usefixtures("no_files")
@every_row(
    "words",
    [
        ("image", "solve", "tf2.15-cpu", "--facts", "/dev/zero"),
        ("image", "verify", "good.sif", "--lock", "fifo"),
        ("image", "verify", "good.sif", "--keyring", "fifo"),
        ("image", "push", "good.sif", "oras://nowhere.invalid/a:1", "--ca", "fifo"),
        ("launch", "--job", "fifo", "--host", "nowhere.invalid"),
        ("launch", "--fix", "fifo", "--host", "nowhere.invalid", "--image", "good.sif", "--", "true"),
        ("launch", "--verify-key", "/dev/null", *NOWHERE, "--image", "good.sif", "--", "true"),
        ("report", "--timeline", "fifo"),
        ("scale", "mnist", "--ranks", "2", "--prove", "fifo"),
        ("explain", "fifo"),
        ("explain", "/dev/zero"),
        ("image", "sign", "/proc/self/mem", "--key", "x"),
        ("image", "verify", "/proc/self/mem"),
        ("image", "sbom", "/proc/self/mem"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_never_ends_or_cannot_be_read_is_refused(capsys, words):
    code, said = answer(capsys, *words)
    assert code == 2, said
    assert any(
        name in said for name in ("fifo: a FIFO", "a device, not a regular file", "Input/output error")
    )


@every_row("command", [("image", "show"), ("image", "verify"), ("data", "get"), ("report",)])
def test_a_name_that_no_file_can_have_is_a_wrong_call(capsys, command):
    code, said = answer(capsys, *command, f"./{'n' * 300}.toml")
    assert (code, "nnnn" in said) == (2, True)


def test_a_fix_of_thousands_of_brackets_is_no_fault_of_toolkit(capsys):
    Path("fix.toml").write_text("a=" + "[" * 3000)
    code, said = answer(capsys, "launch", "--fix", "fix.toml", "--image", "good.sif", "--", "true")
    assert (code, "fix.toml" in said, "unexpected" in said) == (2, True, False)


@every_row("content", [b"\x7fELF\x02", b"\x89PNG\r\n\x1a\n", b"my notes\n"])
def test_probe_replaces_nothing_that_it_did_not_write(capsys, content):
    Path("mine").write_bytes(content)
    code, said = answer(capsys, "probe", "-o", "mine")
    assert (code, "toolkit did not write it" in said) == (2, True)
    assert Path("mine").read_bytes() == content


def test_a_full_disk_is_told_with_its_file_and_leaves_no_study(capsys, monkeypatch):
    fill(monkeypatch)
    code, said = answer(
        capsys, "scale", "--ranks", "1", "--pattern", "(x)", "--image", "good.sif", "--", "true"
    )
    assert (code, "studies/true/study.json: No space left" in said) == (1, True), said
    assert not Path("studies/true").exists()
