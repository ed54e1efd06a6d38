"""Test how toolkit compares an image's files with the manifest that the build wrote."""

import base64
import hashlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.unit.image import locks
from tests.unit.image.sifs import elf
from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.errors import CheckFailed
from toolkit.image.files.folder import FolderTree
from toolkit.image.software.manifest import MANIFEST_PATH, FileHashes, read_manifest
from toolkit.image.trust import audit
from toolkit.model.facts import ImageFacts
from toolkit.model.lock import Lock, Stage
from toolkit.model.mpifacts import ImageMpi

SITE = "opt/toolkit/venv/lib/python3.11/site-packages"
BROUGHT = {
    "pure.py": b"answer = 42\n",
    "native.so": elf(text=b"symbols"),
    "tests/test_pure.py": b"assert True\n",
}
STATUS = """Package: {name}
Status: install ok installed
Version: {version}

"""


def put(root: Path, path: str, content: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def coded(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return built(tmp_path)


def built(tmp_path: Path) -> Path:
    """Write an image with one wheel. The build stripped the wheel's library and removed its tests."""
    record = "".join(f"demo/{name},sha256={coded(content)},\n" for name, content in BROUGHT.items())
    put(tmp_path, f"{SITE}/demo-1.0.dist-info/RECORD", (record + "demo-1.0.dist-info/RECORD,,\n").encode())
    put(tmp_path, f"{SITE}/demo/pure.py", BROUGHT["pure.py"])
    put(tmp_path, f"{SITE}/demo/native.so", elf(text=b""))
    put(tmp_path, "usr/lib/libsystem.so", elf(soname="libsystem.so"))
    put(tmp_path, "usr/share/doc/readme", b"not a program\n")
    put(tmp_path, "var/lib/dpkg/status", STATUS.format(name="dash", version="0.5.12-2").encode())
    (tmp_path / "lib").symlink_to("usr/lib")
    script = [sys.executable, str(shipped_folder("containers") / "manifest.py"), "--root", str(tmp_path)]
    subprocess.run([*script, "--output", str(tmp_path) + MANIFEST_PATH], check=True, timeout=60)
    return tmp_path


def lock() -> Lock:
    return locks.lock(
        base=msgspec.structs.replace(
            locks.lock().base, packages=(locks.file("dash", "0.5.12-2", "_all.deb"),)
        ),
        build=Stage(),
        run=Stage(wheels=(locks.file("Demo", "1.0", ".whl"),)),
    )


def manifest(root: Path) -> FileHashes:
    found = read_manifest(FolderTree(root))
    assert found is not None
    return found


def checks(root: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    tree, said = FolderTree(root), manifest(root)
    hashes = audit.hash_files(tree, said)
    made = (
        audit.packages(tree, lock()),
        audit.wheels(tree, lock(), said, hashes),
        audit.contents(said, hashes, MANIFEST_PATH),
    )
    return {check.name: (check.outcome, check.detail) for check in made}


def test_the_build_writes_down_opt_and_every_library_and_what_it_did_to_wheels(root: Path):
    said = manifest(root)
    assert sorted(said.files) == [
        f"/{SITE}/demo-1.0.dist-info/RECORD",
        f"/{SITE}/demo/native.so",
        f"/{SITE}/demo/pure.py",
        "/usr/lib/libsystem.so",
    ]
    assert said.changed == (f"/{SITE}/demo/native.so",)
    assert said.gone == {"demo-1.0": 1}


def test_an_image_as_it_was_built_holds(root: Path):
    assert checks(root) == {"packages": ("ok", ()), "wheels": ("ok", ()), "files": ("ok", ())}


def test_a_changed_file_of_a_wheel_is_found_by_both(root: Path):
    put(root, f"{SITE}/demo/pure.py", b"answer = 43\n")
    found = checks(root)
    assert found["files"] == ("failed", (f"/{SITE}/demo/pure.py has changed since the build",))
    assert found["wheels"] == (
        "failed",
        (f"/{SITE}/demo/pure.py differs from the file in the wheel demo 1.0",),
    )


def test_a_library_that_the_build_stripped_may_not_change_again(root: Path):
    put(root, f"{SITE}/demo/native.so", elf(text=b"evil"))
    found = checks(root)
    assert found["files"] == ("failed", (f"/{SITE}/demo/native.so has changed since the build",))
    assert found["wheels"][0] == "ok"


def test_a_file_that_is_gone_and_one_that_was_added_are_found(root: Path):
    (root / SITE / "demo/pure.py").unlink()
    put(root, "opt/extra", b"")
    found = checks(root)
    assert found["files"][1] == (
        f"/{SITE}/demo/pure.py was removed since the build",
        "/opt/extra was added since the build",
    )
    assert found["wheels"][1] == (
        "demo 1.0: 2 of its files are missing, but the image's manifest says that the build removed 1",
    )


def test_a_changed_system_library_is_found(root: Path):
    put(root, "usr/lib/libsystem.so", elf(soname="libother.so"))
    assert checks(root)["files"] == ("failed", ("/usr/lib/libsystem.so has changed since the build",))


def test_packages_of_other_versions_and_too_many_are_found(root: Path):
    status = STATUS.format(name="dash", version="0.5.13-1") + STATUS.format(name="gcc", version="12")
    put(root, "var/lib/dpkg/status", status.encode())
    assert checks(root)["packages"] == (
        "failed",
        ("dash: the lock has 0.5.12-2, the image has 0.5.13-1", "gcc 12 is in the image but not in the lock"),
    )


def test_wheels_of_other_versions_and_too_many_are_found(root: Path):
    tree, said = FolderTree(root), manifest(root)
    other = msgspec.structs.replace(lock(), run=Stage(wheels=(locks.file("other", "2.0", ".whl"),)))
    found = audit.wheels(tree, other, said, audit.hash_files(tree, said))
    assert found.detail == (
        "other: the lock has 2.0, the image has none",
        "demo 1.0 is in the image but not in the lock",
    )


def test_without_a_manifest_no_file_of_a_wheel_is_judged(root: Path):
    tree = FolderTree(root)
    found = audit.wheels(tree, lock(), None, audit.hash_files(tree, None))
    assert found.outcome == "ok"
    assert "toolkit did not compare the wheels' files" in found.told


def test_a_record_that_is_no_record_is_told(root: Path):
    put(root, f"{SITE}/demo-1.0.dist-info/RECORD", b"demo/pure.py,sha256=\xff*not base64*,\n")
    assert checks(root)["wheels"][0] == "failed"


@every_row("content", [b"", b"[]", b'{"schema": 1}', b"[" * 100_000])
def test_a_manifest_that_cannot_be_read_is_told(root: Path, content: bytes):
    put(root, MANIFEST_PATH.lstrip("/"), content)
    with pytest.raises(CheckFailed, match="cannot be read"):
        manifest(root)


def test_versions_are_those_that_the_solver_chose():
    mpi = ImageMpi(implementation="openmpi", version="4.1.6", library="/usr/lib/libmpi.so", interfaces=())
    facts = ImageFacts(
        path="x",
        format="sif",
        mpi=mpi,
        python="3.11.2",
        pmix="4.2.2",
        mpi4py="3.1.6",
        tensorflow="2.15.1",
        horovod="0.28.1",
    )
    assert audit.versions(facts, lock()).outcome == "ok"
    other = msgspec.structs.replace(facts, horovod=None, tensorflow="2.16.1")
    assert audit.versions(other, lock()).detail == (
        "tensorflow: the lock has 2.15.1, the image has 2.16.1",
        "horovod: the lock has 0.28.1, the image has none",
    )
