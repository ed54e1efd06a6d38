"""Test a locked package whose script attacks the machine: the script must run only inside a container."""

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import msgspec
import pytest

from tests.services.program import ROOT, toolkit
from toolkit.image.builds.based import write_base
from toolkit.image.locks.fetch import fetch_files, path_of
from toolkit.model.lock import LockedFile, encode_lock
from toolkit.model.progress import Silent

SCRIPT = """#!/bin/sh
echo ran > /evil-ran
for root in /proc/[0-9]*/root / /..; do
    [ -d "$root{folder}" ] && id > "$root{folder}/owned"
done
mkdir -p /tmp/x && mount -t proc proc /tmp/x && id > /tmp/x/1/root{folder}/owned
perl -e 'mkdir "/tmp/y"; chroot "/tmp/y"; chdir ".." for 1..99; chroot "."; system "id > {folder}/owned"'
exit 0
"""


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    for path in (folder, *list(folder.parents)[:-2]):
        path.chmod(path.stat().st_mode | 0o005)
    folder.chmod(0o777)
    return folder


@pytest.fixture
def evil(tmp_path, target):
    """Put a package whose script writes to ``target`` into the cache, as if the user accepted its origin."""
    root = tmp_path / "evil"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        "Package: evil\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example>\nDescription: x\n"
    )
    (root / "DEBIAN" / "postinst").write_text(SCRIPT.replace("{folder}", str(target)))
    (root / "DEBIAN" / "postinst").chmod(0o755)
    made = tmp_path / "evil_1_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, made], check=True, capture_output=True)
    content = made.read_bytes()
    file = LockedFile(
        name="evil",
        version="1",
        file=made.name,
        origin="debian:pool/evil_1_all.deb",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
    )
    path_of(file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(made, path_of(file))
    yield file
    shutil.rmtree(path_of(file).parent)


def with_package(lock, file):
    base = msgspec.structs.replace(lock.base, packages=(*lock.base.packages, file))
    return msgspec.structs.replace(lock, base=base)


def test_rendering_runs_no_script_of_a_package_and_needs_no_engine(
    locked, evil, target, tmp_path, monkeypatch
):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    shutil.copy(ROOT / "recipes" / "mpi-only.toml", tmp_path / "r.toml")
    (tmp_path / "r.lock.json").write_bytes(encode_lock(with_package(locked("mpi-only"), evil)))
    toolkit("image", "render", str(tmp_path / "r.toml"), "-o", str(tmp_path / "out"))
    assert (tmp_path / "out" / "base" / evil.file).is_file()
    assert list(target.iterdir()) == []


def test_a_base_is_made_away_from_the_machine(engine, locked, evil, target, tmp_path):
    lock = with_package(locked("mpi-only"), evil)
    tar = tmp_path / "base.tar"
    write_base(engine, lock, fetch_files(lock.base.packages, Silent()), tar, Silent())
    with tarfile.open(tar) as archive:
        assert "./evil-ran" in archive.getnames()
    assert list(target.iterdir()) == []


def test_a_rendered_folder_makes_the_same_base_in_a_container(engine, locked, tmp_path):
    lock = locked("mpi-only")
    tar = tmp_path / "base.tar"
    write_base(engine, lock, fetch_files(lock.base.packages, Silent()), tar, Silent())
    out = tmp_path / "out"
    toolkit("image", "render", "mpi-only", "-o", str(out))
    subprocess.run(
        [
            *("docker", "run", "--rm", "--network", "none", "--memory", "2g", "--tmpfs", "/tmp:exec,dev"),
            *("-v", f"{out}:/ctx", "toolkit-builder:bootstrap", "sh", "/ctx/make-base.sh", "--in-container"),
        ],
        check=True,
        timeout=900,
        capture_output=True,
    )
    digests = {hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in (tar, out / "base.tar")}
    assert len(digests) == 1
