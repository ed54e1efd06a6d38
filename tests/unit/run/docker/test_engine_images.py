"""Test the search for images in the Docker engine and their export, with a fake engine."""

import json
from types import SimpleNamespace

import docker
import pytest

from tests.unit.image.archives import config, docker_archive, named, oci_layout, tar
from tests.unit.image.test_formats import PROCESS, layers
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.inspect import inspect
from toolkit.run.docker import engine
from toolkit.run.docker.engine_images import load, load_archive, named_image, size_of

SAVED = tar(docker_archive(layers(), **PROCESS))


class Engine:
    def __init__(self, *tags, sends=(SAVED,), size=1000):
        self.tags, self.sends, self.closed = tags, sends, False
        self.id, self.attrs = "sha256:1", {"Size": size}
        self.api = self

    @property
    def images(self):
        # In the SDK, ``client.images`` is a collection, and ``client.api.images`` is a function.
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


@every_row("text", ["docker-daemon:toolkit/x:1", "toolkit/x:1"])
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
    assert told == ["Copying toolkit/x:1 from the Docker engine (1.00 kB)", "Reading toolkit/x:1"]
    assert client.closed
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_name_that_is_not_there_ends_with_those_that_are_near():
    with pytest.raises(BadInput, match="no such image; similar names: toolkit/node:latest"):
        named_image(Engine("toolkit/node:latest", "other:1"), "toolkit/nod:latest")
    with pytest.raises(BadInput, match="its images: other:1"):
        named_image(Engine("other:1"), "zzzz")
    with pytest.raises(BadInput, match="its images: none"):
        named_image(Engine(), "x:1")
    with pytest.raises(BadInput, match="BAD NAME: not a valid name of an image"):
        named_image(Engine(), "BAD NAME")


def test_an_engine_that_sends_without_end_is_stopped(tmp_path, monkeypatch):
    made(tmp_path, monkeypatch, "x:1", sends=iter(lambda: bytes(64 << 20), b""))
    with pytest.raises(CheckFailed, match="sends more than 256 MiB"):
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
    with pytest.raises(Missing, match=r"cache: [\d.]+ [kMG]?B are free, [\d.]+ [kMG]?B are needed") as caught:
        inspect("x:1")
    assert "TOOLKIT_CACHE_DIR" in caught.value.fix
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").touch()
    with pytest.raises(Missing, match="cache: File exists"):
        inspect("x:1")


def test_the_size_is_that_of_the_files_where_the_engine_counts_compressed_layers():
    attrs = {"Id": "sha256:1", "Size": 71, "Descriptor": {"digest": "sha256:1"}}
    steps = [{"Size": 0}, {"Size": 194}, {"Size": 1}]
    assert size_of(SimpleNamespace(id="sha256:1", attrs=attrs, history=lambda: steps)) == 195
    graph = {"Size": 195, "Descriptor": None}
    assert size_of(SimpleNamespace(id="sha256:1", attrs=graph, history=pytest.fail)) == 195


CONFIG_ID = f"sha256:{named(config(layers(), **PROCESS))}"
MANIFEST_ID = "sha256:" + "5" * 64


class Store:
    """A fake engine in which a loaded image has the name ``calls``, and a load prints the lines ``says``."""

    def __init__(self, calls, says, knows=()):
        self.calls, self.says, self.names, self.loads = calls, says, dict.fromkeys(knows, calls), 0
        self.images = SimpleNamespace(get=self._get)
        self.api = SimpleNamespace(load_image=self._load, tag=self._tag)

    def _get(self, name):
        if name not in self.names:
            raise docker.errors.ImageNotFound(name)
        return SimpleNamespace(id=self.names[name], tags=[name])

    def _load(self, file):
        self.loads += 1
        assert file.read(1)
        self.names[self.calls] = self.calls
        yield from ({"stream": ""}, *self.says)

    def _tag(self, image, repository, tag, *, force):
        self.names[f"{repository}:{tag}"] = self._get(image).id


def says(what):
    return ({"stream": f"Loaded image{what}\n"},)


@pytest.fixture
def archive(tmp_path):
    """Return an image archive of Docker 20.10, which names the image by its configuration's digest."""
    (tmp_path / "a.tar").write_bytes(SAVED)
    return tmp_path / "a.tar"


@every_row("calls", [CONFIG_ID, MANIFEST_ID], ids=["the same", "by its manifest"])
def test_an_image_is_loaded_whatever_the_engine_calls_it(archive, calls):
    store = Store(calls, says(f" ID: {calls}"))
    load(store, archive, CONFIG_ID, "base:1")
    assert store.names["base:1"] == calls


def test_an_image_that_containerds_store_saved_gets_into_an_older_engine(tmp_path):
    files = oci_layout(layers(), pack="gzip", **PROCESS)
    manifest = json.loads(files["index.json"])["manifests"][0]["digest"]
    files["manifest.json"] = json.dumps([{"Config": f"blobs/sha256/{CONFIG_ID[7:]}", "Layers": []}]).encode()
    (tmp_path / "a.tar").write_bytes(tar(files))
    store = Store(CONFIG_ID, says(f" ID: {CONFIG_ID}"))
    load(store, tmp_path / "a.tar", manifest, "base:1")
    load(store, tmp_path / "a.tar", manifest, "base:1")
    assert (store.names["base:1"], store.loads) == (CONFIG_ID, 1)


def test_an_image_that_is_there_is_not_loaded_again(archive):
    store = Store(CONFIG_ID, says(""), knows=(CONFIG_ID,))
    load(store, archive, CONFIG_ID, "base:1")
    assert (store.names["base:1"], store.loads) == (CONFIG_ID, 0)


@every_row("content", [SAVED, b"junk", tar({"manifest.json": "[3]", "index.json": "[]"})])
def test_an_archive_of_another_image_is_not_loaded(tmp_path, content):
    (tmp_path / "a.tar").write_bytes(content)
    store = Store(CONFIG_ID, says(f" ID: {CONFIG_ID}"))
    with pytest.raises(CheckFailed, match="does not contain the image base:1"):
        load(store, tmp_path / "a.tar", "sha256:" + "0" * 64, "base:1")
    assert store.loads == 0


def test_an_image_that_the_engine_does_not_find_by_the_name_it_says_is_found_by_its_digest(archive):
    # Docker 28 prints this line for an archive whose index contains only a tag.
    assert load_archive(Store(CONFIG_ID, says(": 1:latest")), archive) == CONFIG_ID


def test_two_images_or_none_are_refused(archive):
    with pytest.raises(CheckFailed, match="the archive contains 0 images"):
        load_archive(Store(MANIFEST_ID, says(": x:1")), archive)
    two = Store(MANIFEST_ID, (*says(": x:1"), *says(": y:1")), knows=("x:1",))
    two.names["y:1"] = CONFIG_ID
    with pytest.raises(CheckFailed, match="the archive contains 2 images"):
        load_archive(two, archive)


def test_an_error_while_loading_is_told(archive):
    with pytest.raises(CheckFailed, match="refuses the archive: no space left on device"):
        load_archive(Store(CONFIG_ID, ({"error": "no space left on device"},)), archive)
