"""The parts of the door to the engine that need no engine."""

import pytest

from toolkit.errors import BadInput, Missing
from toolkit.model.progress import Silent
from toolkit.run import base
from toolkit.run.engine import MEMORY, _packed, build_memory, connect


@pytest.mark.parametrize(
    ("text", "size"), [("6g", 6 << 30), ("6GB", 6 << 30), ("512m", 512 << 20), ("1024", 1024), ("8k", 8192)]
)
def test_the_memory_of_a_build_can_be_asked_for(text, size, monkeypatch):
    monkeypatch.setenv(MEMORY, text)
    assert build_memory(None) == size


@pytest.mark.parametrize("text", ["lots", "-1g", "6t", "1.5g"])
def test_a_size_that_is_none_is_refused(text, monkeypatch):
    monkeypatch.setenv(MEMORY, text)
    with pytest.raises(BadInput, match=f"{MEMORY}={text}: write a size as in 6g"):
        build_memory(None)


def test_a_context_is_the_same_bytes_for_the_same_files():
    assert _packed({"b": b"2", "a": b"1"}).read() == _packed({"a": b"1", "b": b"2"}).read()


def test_a_socket_that_is_not_there_is_no_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(Missing, match="no Docker engine answers"):
        connect()


def test_an_address_that_makes_no_sense_is_no_engine(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x")
    with pytest.raises(Missing, match="no Docker engine answers on nonsense://x"):
        connect()


@pytest.mark.parametrize("release", ["", "--help", "Bookworm", "a b", "../x"])
def test_a_release_that_cannot_be_one_never_reaches_a_command(release):
    with pytest.raises(BadInput, match="no name of a Debian release"):
        base.ensure_base(None, release, "debian:x", Silent())


def test_a_base_says_where_it_came_from():
    published = base.Base("debian@sha256:ab", "sha256:ab", published=True)
    assert str(published) == "debian@sha256:ab (published)"
    local = base.Base("toolkit-base:bookworm", "sha256:cd", published=False)
    assert str(local) == "toolkit-base:bookworm@sha256:cd (bootstrapped with mmdebstrap)"
