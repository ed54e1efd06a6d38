"""Images of the engine by name, and out of it into a file; with an engine made of a few answers."""

import docker
import pytest

from tests.unit.image.archives import docker_archive, tar
from tests.unit.image.test_formats import PROCESS, layers
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.inspect import inspect
from toolkit.run import engine
from toolkit.run.engine_images import named_image

SAVED = tar(docker_archive(layers(), **PROCESS))


class Engine:
    """Answers as docker.DockerClient does."""

    def __init__(self, *tags, sends=(SAVED,), size=1000):
        self.tags, self.sends, self.closed = tags, sends, False
        self.id, self.attrs = "sha256:1", {"Size": size}
        self.api = self

    @property
    def images(self):
        # The SDK has a collection of this name, and its API a function.
        return _Images(self)

    def get(self, name):
        if name == "BAD NAME":
            raise docker.errors.APIError("x", explanation="invalid reference format")
        if name not in self.tags:
            raise docker.errors.ImageNotFound(name)
        return self

    def get_image(self, image, chunk_size):
        assert image == self.id
        yield from self.sends

    def close(self):
        self.closed = True


class _Images:
    def __init__(self, found: Engine) -> None:
        self.get = found.get
        self.tags = found.tags

    def __call__(self):
        return [{"RepoTags": [tag]} for tag in self.tags] + [{"RepoTags": None}]


def made(tmp_path, monkeypatch, *tags, **more) -> Engine:
    found = Engine(*tags, **more)
    monkeypatch.setattr(engine, "connect", lambda timeout: found)
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize("text", ["docker-daemon:toolkit/x:1", "toolkit/x:1"])
def test_an_image_is_read_and_nothing_is_left_behind(tmp_path, monkeypatch, text):
    client = made(tmp_path, monkeypatch, "toolkit/x:1")
    told: list[str] = []

    class Tell:
        step = staticmethod(told.append)
        detail = staticmethod(told.append)

    facts = inspect(text, tell=Tell())
    assert (facts.format, facts.path) == ("docker-daemon", "docker-daemon:toolkit/x:1")
    assert facts.mpi is not None
    assert facts.entrypoint == ("/usr/bin/env", "python3", "-V")
    assert told == ["Taking toolkit/x:1 out of the Docker engine (0 MiB)", "Reading toolkit/x:1"]
    assert client.closed
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_name_that_is_not_there_ends_with_those_that_are_near():
    with pytest.raises(BadInput, match="no such image; near it are toolkit/node:latest"):
        named_image(Engine("toolkit/node:latest", "other:1"), "toolkit/nod:latest")
    with pytest.raises(BadInput, match="it has other:1"):
        named_image(Engine("other:1"), "zzzz")
    with pytest.raises(BadInput, match="it has none at all"):
        named_image(Engine(), "x:1")
    with pytest.raises(BadInput, match="BAD NAME: no name of an image"):
        named_image(Engine(), "BAD NAME")


def test_an_engine_that_sends_without_end_is_stopped(tmp_path, monkeypatch):
    made(tmp_path, monkeypatch, "x:1", sends=iter(lambda: bytes(64 << 20), b""))
    with pytest.raises(CheckFailed, match="sends more than the 256 MiB"):
        inspect("x:1")


def test_an_engine_that_stops_in_the_middle_is_missing(tmp_path, monkeypatch):
    def sends():
        yield SAVED[:1000]
        raise ConnectionError("gone")

    made(tmp_path, monkeypatch, "x:1", sends=sends())
    with pytest.raises(Missing, match="stopped answering"):
        inspect("x:1")


def test_a_cache_without_room_is_missing(tmp_path, monkeypatch):
    made(tmp_path, monkeypatch, "x:1", size=1 << 60)
    with pytest.raises(Missing, match=r"cache: \d+ MiB are free, \d+ MiB are needed") as caught:
        inspect("x:1")
    assert "TOOLKIT_CACHE_DIR" in caught.value.fix
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").touch()
    with pytest.raises(Missing, match="cache: File exists"):
        inspect("x:1")
