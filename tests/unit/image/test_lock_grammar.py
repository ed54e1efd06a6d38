"""Test the check of a lock's fields that runs each time toolkit reads a lock."""

import json

import msgspec
import pytest

from tests.fuzz import locks
from tests.unit.image import hostile
from tests.unit.image.locks import lock
from tests.unit.image.sifs import sandbox
from tests.unit.tables import every_row
from tests.unit.thorough import share
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.files.folder import FolderTree
from toolkit.image.locks.fetch import fetch_files
from toolkit.image.locks.lock import decode_lock, save_lock
from toolkit.image.locks.origins import require_accepted
from toolkit.image.trust import verify
from toolkit.model.lock import LockedFile, encode_lock
from toolkit.model.progress import Silent


def test_a_field_of_another_type_is_named():
    wrong = hostile.changed(json.loads(hostile.plain()), ("base", "packages", 3, "sha256"), 5)
    with pytest.raises(
        BadInput, match=r"^x: not a lock: base\.packages\[3\]\.sha256: Expected `str`, got `int`$"
    ):
        decode_lock(json.dumps(wrong).encode(), "x")


PLACES = list(hostile.places(json.loads(hostile.plain())))


@every_row("number", range(len(PLACES)), ids=[str(path) for path in PLACES])
def test_a_hostile_value_in_any_field_is_refused_or_harmless(number, monkeypatch, tmp_path):
    path = PLACES[number]
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path))
    free = path[-1] in ("why", "source", "title")
    for value in share(hostile.HOSTILE, number, 5):
        why = locks.refused(json.dumps(hostile.changed(json.loads(hostile.plain()), path, value)).encode())
        assert "\n" not in why
        assert len(why) < 500
        if isinstance(value, str) and hostile.MARK in value and not free:
            assert why, value
    assert list(tmp_path.iterdir()) == []


def test_the_hosts_of_the_configured_index_and_mirrors_are_not_foreign(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://ada:pw@index.example:8443/simple")
    monkeypatch.setenv("TOOLKIT_DEBIAN_MIRROR", "https://mirror.example/debian")
    for host in ("index.example:8443", "mirror.example"):
        require_accepted([file(origin=f"https://{host}/x.deb")], "x", ())
    with pytest.raises(BadInput, match=r"index\.example"):
        require_accepted([file(origin="https://index.example/x.deb")], "x", ())


def file(**changes):
    values = {
        "name": "x",
        "version": "1",
        "file": "x.deb",
        "origin": "debian:pool/x.deb",
        "sha256": "ab" * 32,
    }
    return LockedFile(**{**values, "size": 1, **changes})


@every_row("changes", [{"file": "../../x"}, {"file": "a/b"}, {"sha256": "../x"}, {"size": -1}])
def test_a_name_from_an_index_that_leads_out_of_the_cache_is_refused(changes, tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(BadInput, match="expected"):
        fetch_files([file(**changes)], Silent())
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_breaks_its_grammar_is_not_written(tmp_path):
    origin = "http://mirror.example/x.deb"
    base = lock().base
    package = msgspec.structs.replace(base.packages[0], origin=origin)
    wrong = lock(base=msgspec.structs.replace(base, packages=(package,)))
    with pytest.raises(CheckFailed, match=r"not written: base\.packages\[0\]\.origin"):
        save_lock(wrong, tmp_path / "x.lock.json")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_keeps_the_grammar_is_read_back():
    assert decode_lock(encode_lock(lock()), "x") == lock()


@every_row("content", [b"", b"[]", b"{", b"[" * 9999, b"\xff"])
def test_a_refused_lock_inside_an_image_is_a_failed_check(tmp_path, content):
    own, why = verify._own_lock(FolderTree(sandbox(tmp_path, {verify.LOCK_PATH: content})))
    check = verify._lock(own, None, why)
    assert (own, check.outcome) == (None, "failed")
    assert check.told.startswith(f"{verify.LOCK_PATH}: not a lock")


def test_a_hostile_lock_inside_an_image_is_a_failed_check_without_its_text(tmp_path):
    lock = hostile.changed(json.loads(hostile.plain()), ("recipe",), "\x1b]0;OWNED\a")
    own, why = verify._own_lock(FolderTree(sandbox(tmp_path, {verify.LOCK_PATH: json.dumps(lock)})))
    check = verify._lock(own, None, why)
    assert check.outcome == "failed"
    assert check.told.isprintable()


def test_a_lock_of_an_earlier_release_inside_an_image_is_not_checked(tmp_path):
    content = b'{"schema": "toolkit.lock/1"}'
    own, why = verify._own_lock(FolderTree(sandbox(tmp_path, {verify.LOCK_PATH: content})))
    check = verify._lock(own, None, why)
    assert (own, check.outcome) == (None, "not-checked")
    assert check.told.startswith("an earlier release of toolkit wrote /opt/toolkit/lock.json")
    assert verify._lock(own, lock(), why).outcome == "failed"


def test_an_image_without_a_lock_is_not_checked(tmp_path):
    own, why = verify._own_lock(FolderTree(sandbox(tmp_path, {"etc/os-release": "ID=x"})))
    assert verify._lock(own, None, why).outcome == "not-checked"
