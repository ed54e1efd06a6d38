import errno
import os
import socket
from pathlib import Path

import pytest

from tests.unit.disks import fill
from tests.unit.tables import every_row
from toolkit import files, hints
from toolkit.errors import BadInput
from toolkit.files import check_given, is_there, write_whole
from toolkit.image.transfer import shrink
from toolkit.run.local import LocalRunner
from toolkit.run.registry import memory


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path) -> int:
    return path.stat().st_mode & 0o7777


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_umask_decides_unless_a_mode_is_given(tmp_path, umask):
    for number, wanted in ((None, 0o640), (0o600, 0o600), (0o755, 0o755), (0o644, 0o644)):
        file = tmp_path / f"{number}"
        write_whole(file, b"content", number)
        assert (file.read_bytes(), mode(file)) == (b"content", wanted)


def test_a_file_is_replaced_and_nothing_is_beside_it(tmp_path):
    for content in (b"old", b"", b"x" * 100_000):
        write_whole(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert names(tmp_path) == ["file"]


def test_a_name_may_be_as_long_as_names_are(tmp_path):
    for name in ("n" * 255, "\u20ac" * 85):
        write_whole(tmp_path / name, b"x")
    assert len(names(tmp_path)) == 2


def test_a_private_file_is_private_while_it_is_written(tmp_path, monkeypatch):
    seen = []
    write = os.write

    def watched(number, content):
        seen.append(os.fstat(number).st_mode & 0o777)
        return write(number, content)

    monkeypatch.setattr("toolkit.files.os.write", watched)
    write_whole(tmp_path / "secret", b"x", 0o600)
    assert seen == [0o600]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"old")
    fill(monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"new content")
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_disk_that_says_so_only_in_the_end_is_full_too(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"old")
    close = os.close

    def full(number):
        close(number)
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr("toolkit.files.os.close", full)
    with pytest.raises(OSError, match="quota"):
        write_whole(file, b"new")
    monkeypatch.undo()
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def interrupted(number, content):
        raise KeyboardInterrupt

    monkeypatch.setattr("toolkit.files.os.write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", b"new")
    assert names(tmp_path) == []


@every_row("place", ["absent/file", "plain/file", "folder", "."])
def test_a_place_that_takes_no_file_is_an_error_and_stays_as_it_was(tmp_path, place):
    (tmp_path / "plain").touch()
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError):
        write_whole(tmp_path / place, b"x")
    assert names(tmp_path) == ["folder", "plain"]
    assert names(tmp_path / "folder") == ["inside"]


def test_a_runner_leaves_the_old_file_on_a_full_disk(tmp_path, monkeypatch):
    file = tmp_path / "file"
    LocalRunner().write(str(file), b"old")
    fill(monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        LocalRunner().write(str(file), b"new content")
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@every_row("what", ["uploads", "layers"])
def test_what_is_remembered_of_registries_stays_on_a_full_disk(tmp_path, monkeypatch, what):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path))
    digest = f"sha256:{'0' * 64}"

    def remember(name):
        if what == "uploads":
            memory.remember_blob("registry.example", digest, name)
        else:
            hints.keep("registry/packed", digest, shrink._Known(name, 1))

    remember("old")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    if what == "uploads":  # an upload's address can grant write access
        assert [mode(path) for path in files] == [0o600]
    fill(monkeypatch)
    remember("new")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


@every_row("kind", ["folder", "FIFO", "socket", "device"])
def test_only_regular_files_are_read_and_a_fifo_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    else:
        path = Path("/dev/zero")
    with pytest.raises(BadInput, match=r": (a \w+, not a regular file|No such device)"):
        files.read_given(path, limit=10, label="--facts")


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert files.read_given(path, limit=5) == b"12345"
    with pytest.raises(BadInput, match="longer than 4 B"):
        files.read_given(path, limit=4)
    with pytest.raises(BadInput, match="No such file"):
        files.read_given(tmp_path / "absent", limit=4)
    with pytest.raises(BadInput, match=r"null (byte|character)"):
        files.read_given(tmp_path / "a\0b", limit=4)


def test_a_file_that_can_be_opened_and_not_read_is_refused():
    with pytest.raises(BadInput, match="--facts /proc/self/mem: Input/output error"):
        check_given(Path("/proc/self/mem"), label="--facts")


def test_a_socket_is_called_one(tmp_path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s"))
        with pytest.raises(BadInput, match="s: a socket, not a regular file"):
            check_given(tmp_path / "s")


def test_what_is_there_is_told_from_what_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert is_there(tmp_path / "file")
    assert is_there(tmp_path / "link")
    assert not is_there(tmp_path / "gone")
    for path in (tmp_path / ("n" * 300), tmp_path / "file" / "below"):
        with pytest.raises(BadInput):
            is_there(path)


def test_a_full_disk_is_told_with_the_name_that_was_asked_for(tmp_path, monkeypatch):
    fill(monkeypatch)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(tmp_path / "file", b"content")
    assert caught.value.filename == str(tmp_path / "file")
