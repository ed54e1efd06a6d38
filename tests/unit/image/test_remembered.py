"""Test that toolkit uses cached facts and digests only if the file did not change."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.unit.tables import every_row
from toolkit import hints
from toolkit.image import remembered
from toolkit.image.files import digest
from toolkit.model.facts import ImageFacts
from toolkit.model.rank import WHOLE_IMAGE, RankView

FACTS = ImageFacts(path="/a.sif", format="sif", digest="sha256:1", glibc="2.36", absent={"mpi": "no library"})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    remembered._code.cache_clear()
    return tmp_path / "cache"


class Reader:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> ImageFacts:
        self.calls += 1
        return FACTS


def test_facts_are_read_once_and_follow_a_copy():
    reader = Reader()
    for path in ("/a.sif", "/copy.sif"):
        found = remembered.facts_of("sha256:1", "sif", path, WHOLE_IMAGE, reader)
        assert found == msgspec.structs.replace(FACTS, path=path)
    assert reader.calls == 1


@every_row(
    ("digest", "view"),
    [
        ("sha256:2", WHOLE_IMAGE),
        ("sha256:1", RankView(command=("/opt/solver",))),
        ("sha256:1", RankView(script="import mpi4py")),
        ("sha256:1", RankView(hidden=("/tmp",))),
        ("sha256:1", RankView(told={"PATH": "/opt"})),
    ],
)
def test_what_decides_the_facts_is_asked_again(digest, view, cache: Path):
    shutil.rmtree(cache, ignore_errors=True)
    reader = Reader()
    remembered.facts_of("sha256:1", "sif", "/a.sif", WHOLE_IMAGE, reader)
    remembered.facts_of(digest, "sif", "/a.sif", view, reader)
    assert reader.calls == 2


def test_an_environment_that_changed_is_read_again(tmp_path: Path):
    reader, env = Reader(), tmp_path / "env.sqsh"
    for content in ("one", "two!"):
        env.write_text(content)
        remembered.facts_of("sha256:1", "sif", "/a.sif", RankView(env=str(env)), reader)
    assert reader.calls == 2


def test_another_toolkit_reads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reader = Reader()
    for part in remembered._READERS:
        (tmp_path / "code" / part).mkdir(parents=True)
    module = tmp_path / "code" / "image" / "a.py"
    monkeypatch.setattr(remembered, "package", lambda: tmp_path / "code")
    for text in ("x = 1\n", "x = 10\n"):
        module.write_text(text)
        remembered._code.cache_clear()
        remembered.facts_of("sha256:1", "sif", "/a.sif", WHOLE_IMAGE, reader)
    assert reader.calls == 2


@every_row("content", [b"", b"{", b"[]", b"\xff", b'{"path": 1}', b"[" * 3000])
def test_a_damaged_entry_is_read_again(content, cache: Path):
    shutil.rmtree(cache, ignore_errors=True)
    reader = Reader()
    remembered.facts_of("sha256:1", "sif", "/a.sif", WHOLE_IMAGE, reader)
    (entry,) = cache.glob("facts/*.json")
    entry.write_bytes(content)
    assert remembered.facts_of("sha256:1", "sif", "/a.sif", WHOLE_IMAGE, reader) == FACTS
    assert reader.calls == 2


def test_a_cache_that_cannot_be_written_costs_only_the_work(cache: Path):
    cache.write_text("a file")
    assert remembered.facts_of("sha256:1", "sif", "/a.sif", WHOLE_IMAGE, Reader()) == FACTS


def test_the_oldest_entries_go(cache: Path):
    for number in range(5):
        hints.keep("facts", str(number), number, limit=3)
        os.utime(cache / "facts" / f"{number}.json", (number, number))
    assert sorted(path.stem for path in cache.glob("facts/*")) == ["2", "3", "4"]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the list of files that toolkit hashed. The clock is ten seconds ahead, because the cache ignores
    new files.
    """
    real, calls = digest.hash_file, []
    now = digest.time.time()
    monkeypatch.setattr(digest.time, "time", lambda: now + 10)

    def counted(path: Path) -> str:
        calls.append(path)
        return real(path)

    monkeypatch.setattr(digest, "hash_file", counted)
    return calls


def test_an_unchanged_file_is_hashed_once(tmp_path: Path, hashed: list[Path]):
    image = tmp_path / "a.sif"
    image.write_bytes(b"one")
    assert len({digest.known_sha256(image) for _ in range(3)}) == 1
    assert hashed == [image]


def test_a_changed_file_is_hashed_again_even_with_its_old_size_and_time(tmp_path: Path, hashed: list[Path]):
    image = tmp_path / "a.sif"
    image.write_bytes(b"one")
    first, status = digest.known_sha256(image), image.stat()
    image.write_bytes(b"two")
    os.utime(image, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest.known_sha256(image) != first
    assert len(hashed) == 2


def test_the_sum_of_a_file_that_may_still_change_is_not_kept(tmp_path: Path, hashed, monkeypatch):
    image = tmp_path / "a.sif"
    image.write_bytes(b"one")
    changed = image.stat().st_ctime
    monkeypatch.setattr(digest.time, "time", lambda: changed + 1)
    digest.known_sha256(image)
    digest.known_sha256(image)
    assert len(hashed) == 2
