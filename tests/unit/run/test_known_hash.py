"""Test that toolkit computes the SHA-256 of a remote file once, until the file changes."""

import os

import pytest

from toolkit import hints
from toolkit.files import hash_file
from toolkit.run.command import Completed
from toolkit.run.known_hash import known_remote_hash
from toolkit.run.local import LocalRunner


class Host(LocalRunner):
    """A fake remote host that counts its checksums; without ``times``, its ``stat`` prints no exact times."""

    def __init__(self, place="far", times=True):
        self.place, self.hashed, self._times = place, 0, times

    def run(self, command):
        if command.words[0] == "sha256sum":
            self.hashed += 1
        elif not self._times:
            return Completed(command, 0, b"5 6 7 ? ?\n1795700000\n", b"")
        return super().run(command)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(hints, "SETTLED_SECONDS", -5.0)  # toolkit stores the hash also of a new file


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "an 'image'.sif"
    path.write_bytes(b"one")
    return path


def test_a_file_that_stays_the_same_is_read_once(file):
    host = Host()
    assert {known_remote_hash(host, str(file)) for _ in range(3)} == {hash_file(file)}
    assert host.hashed == 1
    known_remote_hash(Host("near"), str(file))
    assert host.hashed == 1


def test_a_file_with_new_bytes_is_read_again_though_its_time_was_set_back(file):
    host = Host()
    known_remote_hash(host, str(file))
    before = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert known_remote_hash(host, str(file)) == hash_file(file)
    other = file.with_name("other")
    other.write_bytes(b"six")
    other.replace(file)
    assert known_remote_hash(host, str(file)) == hash_file(file)
    assert host.hashed == 3


def test_a_hash_of_a_file_that_has_just_changed_is_not_kept(file, monkeypatch):
    monkeypatch.setattr(hints, "SETTLED_SECONDS", 3600.0)
    host = Host()
    known_remote_hash(host, str(file))
    known_remote_hash(host, str(file))
    assert host.hashed == 2


def test_a_file_that_changes_while_it_is_read_is_read_again(file):
    class Changing(Host):
        def run(self, command):
            done = super().run(command)
            if command.words[0] == "sha256sum" and self.hashed == 1:
                file.write_bytes(b"new")
            return done

    host = Changing()
    known_remote_hash(host, str(file))
    assert known_remote_hash(host, str(file)) == hash_file(file)


def test_a_host_without_exact_times_reads_the_file_each_time(file):
    host = Host(times=False)
    assert known_remote_hash(host, str(file)) == known_remote_hash(host, str(file)) == hash_file(file)
    assert host.hashed == 2


def test_a_file_that_does_not_exist_has_no_hash(tmp_path):
    assert known_remote_hash(Host(), str(tmp_path / "none")) == ""
