"""Test that a script makes a base image from a lock's packages, in a container with few privileges."""

import hashlib
import subprocess
import tarfile
from types import SimpleNamespace

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.model.lock import LockedFile
from toolkit.model.progress import Silent
from toolkit.render import render
from toolkit.run.docker import bootstrap
from toolkit.run.docker.bootstrap import SCRIPT, base_files
from toolkit.run.docker.containers import Box, RunResult, run_once
from toolkit.run.docker.copy_out import CopyOut, copy_out

CONTENT = b"not really a package"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def context(tmp_path):
    (tmp_path / "x.deb").write_bytes(CONTENT)
    package = LockedFile(
        name="libx",
        version="1:1",
        file="libx_1%3a1_all.deb",
        origin="debian:pool/x.deb",
        sha256=DIGEST,
        size=20,
    )
    files = base_files("bookworm", (package,), {DIGEST: tmp_path / "x.deb"}, 17)
    assert set(files) == {SCRIPT, "base/SHA256SUMS", "base/libx_1_1_all.deb"}
    return files


class Folder:
    def __init__(self, root, files):
        self.root = root
        for name, content in files.items():
            path = root / "ctx" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        (root / "bin").mkdir()
        (root / "tmp").mkdir()
        self.program("dpkg-deb", "echo Package: libx")
        self.program(
            "mmdebstrap",
            f'for word; do echo "$word"; done > {root}/words; cp -r "{root}"/tmp/*/archive {root}/; '
            'while [ "$1" != -- ]; do shift; done; echo base > "$3"',
        )

    def program(self, name, text):
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(self, *words, user=1000):
        self.program("id", f"echo {user}")
        env = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "TMPDIR": str(self.root / "tmp")}
        return subprocess.run(
            ["sh", self.root / "ctx" / SCRIPT, *words], env=env, capture_output=True, text=True
        )

    @property
    def words(self):
        return (self.root / "words").read_text().splitlines()


@pytest.fixture
def folder(tmp_path, context):
    return Folder(tmp_path, context)


def test_an_ordinary_user_unpacks_in_a_user_namespace(folder):
    done = folder.run()
    assert done.returncode == 0, done.stderr
    assert folder.words[:2] == ["--mode=unshare", "--include=libx"]
    assert (folder.root / "ctx" / "base.tar").read_text() == "base\n"
    assert list((folder.root / "tmp").iterdir()) == []


def test_the_suite_stands_behind_the_end_of_the_options(folder):
    folder.run()
    end = folder.words.index("--")
    assert folder.words[end + 1] == "bookworm"
    assert folder.words[end + 3].startswith("deb [trusted=yes] copy:///")
    assert not [word for word in folder.words[end + 1 :] if word.startswith("-")]


def test_root_is_refused_outside_a_container(folder):
    done = folder.run(user=0)
    assert done.returncode == 2
    assert "run it as an ordinary user" in done.stderr
    assert not (folder.root / "words").exists()


def test_in_a_container_nothing_is_mounted(folder):
    assert folder.run("--in-container", user=0).returncode == 0
    assert folder.words[:2] == ["--mode=root", "--skip=chroot/mount"]


def test_a_package_that_changed_since_is_refused(folder):
    (folder.root / "ctx" / "base" / "libx_1_1_all.deb").write_bytes(b"other")
    assert folder.run().returncode != 0
    assert not (folder.root / "words").exists()


def test_the_packages_become_a_repository_of_their_own(folder):
    folder.run()
    archive = folder.root / "archive"
    index = (archive / "Packages").read_bytes()
    assert index.decode() == (
        f"Package: libx\nFilename: ./libx_1_1_all.deb\nSize: {len(CONTENT)}\nSHA256: {DIGEST}\n\n"
    )
    digest = hashlib.sha256(index).hexdigest()
    release = (archive / "Release").read_text()
    assert release == f"Suite: bookworm\nCodename: bookworm\nSHA256:\n {digest} {len(index)} Packages\n"


@pytest.fixture
def box(monkeypatch, context, tmp_path):
    seen = []

    def noting(_client, box, words, _on_line):
        seen.append((box, words))
        return RunResult(0, ())

    monkeypatch.setattr(bootstrap, "run_once", noting)
    monkeypatch.setattr(bootstrap, "ensure_bootstrapper", lambda *_: "toolkit-builder:bootstrap")
    bootstrap.rootfs(None, "bookworm", context, tmp_path / "base.tar", Silent())
    (found,) = seen
    assert found[1] == ("sh", "/toolkit-base/make-base.sh", "--in-container")
    return found[0]


def test_a_base_is_made_without_network_and_with_limits(box):
    assert box.network == "none"
    assert box.binds == {}
    assert box.memory == 2 << 30
    assert box.timeout == 900


def test_a_base_is_made_with_few_capabilities(box):
    dangerous = {
        "SYS_ADMIN",
        "SYS_PTRACE",
        "SYS_MODULE",
        "SYS_RAWIO",
        "DAC_READ_SEARCH",
        "NET_ADMIN",
        "NET_RAW",
    }
    assert box.capabilities is not None
    assert not dangerous & set(box.capabilities)
    assert not box.nested


def test_few_capabilities_are_asked_of_the_engine():
    asked = {}

    class Engine:
        class api:  # noqa: N801 - as the SDK calls it
            @staticmethod
            def create_host_config(**words):
                asked.update(words)
                raise CheckFailed("enough")

    with pytest.raises(CheckFailed, match="enough"):
        run_once(Engine, Box("x", capabilities=("CHOWN",), scratch=5), ("true",))
    assert (asked["cap_drop"], asked["cap_add"]) == (["ALL"], ["CHOWN"])
    assert asked["security_opt"] == ["no-new-privileges"]
    assert asked["pids_limit"] > 0
    assert asked["tmpfs"]["/tmp"].endswith("size=5")


def test_a_failure_shows_the_last_lines(monkeypatch, context, tmp_path):
    lines = tuple(f"line {number}" for number in range(100))
    monkeypatch.setattr(bootstrap, "run_once", lambda *_: RunResult(1, lines))
    monkeypatch.setattr(bootstrap, "ensure_bootstrapper", lambda *_: "x")
    with pytest.raises(
        CheckFailed, match="the base image of bookworm from the locked packages: mmdebstrap exited with"
    ) as caught:
        bootstrap.rootfs(None, "bookworm", context, tmp_path / "base.tar", Silent())
    assert caught.value.detail[-1] == "line 99"


def archived(entry, content=b""):
    packed = entry.tobuf() + content
    return SimpleNamespace(
        get_archive=lambda *_a, **_k: ([packed + bytes(-len(packed) % 512), bytes(1024)], {})
    )


@every_row(("kind", "size"), [("link", 0), ("device", 0), ("large", 11)])
def test_only_a_regular_file_of_a_limited_size_is_copied_out(tmp_path, kind, size):
    entry = tarfile.TarInfo("base.tar")
    entry.size = size
    entry.type = {"link": tarfile.SYMTYPE, "device": tarfile.CHRTYPE}.get(kind, tarfile.REGTYPE)
    entry.linkname = "/etc/shadow" if kind == "link" else ""
    with pytest.raises(CheckFailed, match="is not a regular file"):
        copy_out(archived(entry, bytes(size)), CopyOut("/x/base.tar", tmp_path / "out", 10))
    assert list(tmp_path.iterdir()) == []


def test_a_regular_file_is_copied_out(tmp_path):
    entry = tarfile.TarInfo("base.tar")
    entry.size = 5
    copy_out(archived(entry, b"whole"), CopyOut("/x/base.tar", tmp_path / "out", 10))
    assert (tmp_path / "out").read_bytes() == b"whole"


@every_row("end", ["\n", "\r", "\x0b", "\x85", "\u2028", "\u2029", "\0", "\x1b"])
def test_no_value_ends_its_line_in_a_build_file(end):
    with pytest.raises(BadInput, match="a control character or a line break"):
        render("containers", "Dockerfile.j2", values(f"x{end}RUN evil"), one_line=True)
    assert "RUN fine" in render("containers", "Dockerfile.j2", values("RUN fine"), one_line=True)


def values(text):
    empty = dict.fromkeys(
        ("unbuildable", "rootfs", "compiled", "ready", "said", "environment", "brought"), ()
    )
    return {**empty, "name": text, "title": "", "version": "", "base": "x", "stages": ("base",), "seconds": 1}
