import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.disks import fill
from toolkit.cli.frame.files import write_whole
from toolkit.errors import BadInput, CheckFailed


def test_a_folder_that_is_not_there_is_the_callers_mistake(tmp_path):
    with pytest.raises(BadInput, match=r"absent/file: cannot be written: No such file or directory"):
        write_whole(tmp_path / "absent" / "file", b"x")


def test_a_folder_in_the_place_of_the_file_is_too(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(BadInput, match="file: cannot be written: Is a directory"):
        write_whole(tmp_path / "file", b"x")


def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "own").mkdir()
    link = tmp_path / "link"
    link.symlink_to("own/file")
    for content in (b"new", b"newer"):
        write_whole(link, content)
        assert (tmp_path / "own" / "file").read_bytes() == content
    assert link.is_symlink()


def test_what_is_no_file_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        write_whole(pipe, b"x" * 100_000)
        assert reader.stdout.read() == b"x" * 100_000
    assert pipe.is_fifo()


def test_a_dash_is_no_name_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="not the name of a file") as caught:
        write_whole(Path("-"), b"x")
    assert "/dev/stdout" in caught.value.fix
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_not(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_whole(file, b"old")
    fill(monkeypatch)
    with pytest.raises(CheckFailed, match="file: cannot be written: No space left") as told:
        write_whole(file, b"new content")
    assert "another disk" in told.value.fix
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
