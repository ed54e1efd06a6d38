"""Test the download addresses of a lock's files."""

import msgspec
import pytest

from toolkit.errors import CheckFailed, Missing
from toolkit.image.locks import origins
from toolkit.model.lock import LockedFile

HASH = "ab" * 32
WHEEL = LockedFile(
    name="a", version="1", file="a-1-py3-none-any.whl", origin="index:3.11", sha256=HASH, size=1
)
OFFERED = f"""
lock-version = "1.0"
created-by = "test"
[[packages]]
name = "a"
version = "1"
wheels = [{{ url = "https://index.example/a-1-py3-none-any.whl", hashes = {{ sha256 = "{HASH}" }} }}]
sdist = {{ url = "https://index.example/a-1.tar.gz", hashes = {{ sha256 = "{"cd" * 32}" }} }}
""".encode()


@pytest.fixture
def index(monkeypatch):
    """Return the list to which a fake package index adds each request."""
    asked = []

    def offered(pins, *, python, index):
        asked.append((pins, python, index))
        return OFFERED

    monkeypatch.setattr(origins.wheels, "lock_all_files", offered)
    return asked


def of(locked, **changes):
    return msgspec.structs.replace(locked, **changes)


def test_the_index_is_asked_once_for_all_files_and_tells_where_each_is(index):
    sdist = of(WHEEL, sha256="cd" * 32, file="a-1.tar.gz")
    found = origins.addresses([WHEEL, sdist], {})
    assert found == {
        HASH: ("https://index.example/a-1-py3-none-any.whl",),
        "cd" * 32: ("https://index.example/a-1.tar.gz",),
    }
    assert index == [(["a==1"], "3.11", None)]


def test_a_file_that_the_index_has_in_other_bytes_only_has_no_address(index):
    assert origins.addresses([of(WHEEL, sha256="ef" * 32)], {}) == {"ef" * 32: ()}


def test_each_index_is_asked_alone_for_a_file_that_uv_left_out(monkeypatch):
    """uv takes the files of a release from only one index, although another index may have more files."""
    other = OFFERED.replace(HASH.encode(), b"ef" * 32)
    answers = {None: other, "": other, "https://more.example/simple": OFFERED}

    def offered(pins, *, python, index):
        if index == "":
            raise CheckFailed("resolving", detail=["no such release"])
        return answers[index]

    monkeypatch.setattr(origins.wheels, "lock_all_files", offered)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://more.example/simple")
    found = origins.addresses([WHEEL], {})
    assert found == {HASH: ("https://index.example/a-1-py3-none-any.whl",)}


def test_an_index_that_has_it_no_more_is_told_with_what_to_do(monkeypatch):
    def refuses(pins, *, python, index):
        raise CheckFailed("resolving", detail=["a was yanked"])

    monkeypatch.setattr(origins.wheels, "lock_all_files", refuses)
    with pytest.raises(Missing, match="or does not have a file that the lock names") as caught:
        origins.addresses([WHEEL], {})
    assert caught.value.detail == ("a was yanked",)
    assert "PIP_INDEX_URL" in caught.value.fix


def test_a_package_of_debian_is_on_every_mirror():
    file = of(WHEEL, origin="debian:pool/a.deb")
    mirrors = {"debian": ("http://one.example/debian", "http://two.example/debian")}
    assert origins.addresses([file], mirrors)[HASH] == (
        "http://one.example/debian/pool/a.deb",
        "http://two.example/debian/pool/a.deb",
    )


def test_without_a_mirror_the_variable_is_told():
    with pytest.raises(Missing, match="no Debian mirror is configured") as caught:
        origins.addresses([of(WHEEL, origin="debian-security:pool/a.deb")], {})
    assert "TOOLKIT_DEBIAN_MIRROR" in caught.value.fix


def test_an_address_is_one():
    file = of(WHEEL, origin="https://archive.example/a-1.tar.gz")
    assert origins.addresses([file], {}) == {HASH: ("https://archive.example/a-1.tar.gz",)}
