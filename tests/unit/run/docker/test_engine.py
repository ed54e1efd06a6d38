"""Test the parts of toolkit's Docker interface that work without a Docker engine."""

import gc
import hashlib
import io
import json
import socket
import tarfile
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, Missing
from toolkit.model.progress import Silent
from toolkit.run.docker import base, engine
from toolkit.run.docker.engine import MEMORY, add_labels, build_memory, connect, pack_context


@every_row(
    ("text", "size"), [("6g", 6 << 30), ("6GB", 6 << 30), ("512m", 512 << 20), ("1024", 1024), ("8k", 8192)]
)
def test_the_memory_of_a_build_can_be_asked_for(text, size, monkeypatch):
    monkeypatch.setenv(MEMORY, text)
    assert build_memory(None) == size


@every_row("text", ["lots", "-1g", "6t", "1.5g"])
def test_a_size_that_is_none_is_refused(text, monkeypatch):
    monkeypatch.setenv(MEMORY, text)
    with pytest.raises(BadInput, match=f"{MEMORY}={text}: expected a size, such as 6g"):
        build_memory(None)


def test_a_context_is_the_same_bytes_for_the_same_files_wherever_their_content_is(tmp_path):
    (tmp_path / "two").write_bytes(b"2")
    first = b"".join(pack_context({"b": b"2", "a": b"1"}))
    assert b"".join(pack_context({"a": b"1", "b": tmp_path / "two"})) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert {entry.name: tar.extractfile(entry).read() for entry in tar} == {"a": b"1", "b": b"2"}


def test_all_labels_are_one_step_and_taken_as_they_stand():
    files = {"Dockerfile": b"FROM scratch\n", "a": b"1"}
    labels = {"a.b": "two words", "c": 'say "$HOME" \\ ä'}
    made = add_labels(files, labels)
    assert made["Dockerfile"].decode() == (
        'FROM scratch\nLABEL "a.b"="two words" "c"="say \\"\\$HOME\\" \\\\ ä"\n'
    )
    assert made["a"] == b"1"
    assert add_labels(files, {}) is files


def test_a_label_of_two_lines_is_refused():
    with pytest.raises(BadInput, match="a label cannot contain the character"):
        add_labels({"Dockerfile": b""}, {"a": "1\nRUN evil"})


def test_a_socket_that_is_not_there_is_no_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(Missing, match="no Docker engine answers"):
        connect()


def test_a_socket_that_an_engine_left_behind_is_no_engine(tmp_path, monkeypatch):
    where = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(where))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{where}")
    with pytest.raises(Missing, match="no Docker engine answers") as raised:
        connect()
    assert "sudo systemctl start docker" in raised.value.fix
    del raised
    gc.collect()  # Python warns about an open socket, and a warning fails the test


def test_a_socket_whose_path_has_a_space_is_the_one_that_is_asked(tmp_path, monkeypatch, context):
    (tmp_path / "my engine").mkdir()
    where = tmp_path / "my engine" / "docker.sock"
    knocked = []
    monkeypatch.setattr(engine, "_knock", lambda path: (knocked.append(path), Path(path).stat()))
    context(f"unix://{where}")
    with pytest.raises(Missing, match=rf"on unix://{where} \(the docker context rootless\)"):
        connect()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{where}")
    with pytest.raises(Missing, match=f"on unix://{where}"):
        connect()
    assert knocked == [str(where)] * 2


def test_an_address_that_makes_no_sense_is_no_engine(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x")
    with pytest.raises(Missing, match="no Docker engine answers on nonsense://x"):
        connect()


@every_row("where", ["ssh://no-such-host.invalid", "ssh://127.0.0.1:9", "ssh://", "tcp://127.0.0.1:9"])
def test_an_engine_elsewhere_that_does_not_answer_is_missing(where, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", where)
    with pytest.raises(Missing, match=f"no Docker engine answers on {where}"):
        connect()


@pytest.fixture
def context(tmp_path, monkeypatch):
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(engine, "_SOCKET", f"unix://{tmp_path}/usual.sock")  # a socket without a listener

    def choose(host, name="rootless"):
        (tmp_path / "config.json").write_text(json.dumps({"currentContext": name}))
        folder = tmp_path / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
        folder.mkdir(parents=True)
        meta = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host}}}
        (folder / "meta.json").write_text(json.dumps(meta))
        return folder / "meta.json"

    return choose


def test_the_engine_is_the_one_that_the_docker_command_uses(tmp_path, context):
    context(f"unix://{tmp_path}/other.sock")
    with pytest.raises(Missing, match=rf"on unix://{tmp_path}/other.sock \(the docker context rootless\)"):
        connect()


def test_docker_host_comes_before_the_context(tmp_path, context, monkeypatch):
    context(f"unix://{tmp_path}/other.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/named.sock")
    with pytest.raises(Missing, match=r"on unix://.*/named.sock"):
        connect()


def test_a_context_that_is_gone_or_damaged_is_no_engine(tmp_path, context):
    described = context("unix:///x")
    described.write_text("{")
    with pytest.raises(Missing, match=r"context cannot be read: .*rootless"):
        connect()
    described.unlink()
    with pytest.raises(Missing, match=r"on unix://.*/usual.sock"):
        connect()


@every_row("release", ["", "--help", "Bookworm", "a b", "../x"])
def test_a_release_that_cannot_be_one_never_reaches_a_command(release):
    with pytest.raises(BadInput, match="is not a Debian release"):
        base.ensure_base(None, release, "debian:x", Silent())


def test_a_base_says_where_it_came_from():
    published = base.BaseImage("debian@sha256:ab", "sha256:ab", published=True)
    assert str(published) == "debian@sha256:ab (published)"
    local = base.BaseImage("toolkit-base:bookworm", "sha256:cd", published=False)
    assert str(local) == "toolkit-base:bookworm@sha256:cd (bootstrapped with mmdebstrap)"
