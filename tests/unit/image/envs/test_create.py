"""Test environments over an image: packages of the image, added packages, and refused requests."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile

import msgspec
import pytest

from tests.unit.image.envs.made import write_image, write_wheel
from tests.unit.image.sifs import sif, squashfs
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.envs.check import changes, check_env, differs
from toolkit.image.envs.create import create
from toolkit.image.envs.lockfile import LOCK, encode_lock, is_env, lock_file, read_env
from toolkit.image.envs.requirements import EnvRequirements
from toolkit.image.files.bounded import Budget
from toolkit.image.files.sif.squash import SquashTree
from toolkit.model.progress import Silent

SITE_IN = "/lib/python3.11/site-packages"


@pytest.fixture
def image(tmp_path):
    return write_image(tmp_path / "centre.sif")


@pytest.fixture
def made(tmp_path, image):
    def call(*requirements, **more):
        links = ("--find-links", str(tmp_path / "wheels"))
        (tmp_path / "wheels").mkdir(exist_ok=True)
        wanted = EnvRequirements(requirements=requirements, options=links, hashes=more.pop("hashes", {}))
        target = tmp_path / more.pop("name", "my.env")
        create(wanted, more.pop("image", image), target, Silent(), **more)
        return target

    return call


def tree_of(env):
    return SquashTree(io.BytesIO(env.read_bytes()), 0, env.name, Budget(env.name))


def packages(env):
    return {one.name: one.version for one in read_env(env).packages}


def test_what_the_image_has_is_not_installed_again(tmp_path, made, image):
    write_wheel(tmp_path / "wheels", "pure", "1.0", "six", "numpy>=1.20", "extra-one")
    write_wheel(tmp_path / "wheels", "extra_one", "2.0")
    env = made("pure")
    assert packages(env) == {"extra-one": "2.0", "pure": "1.0"}
    lock = read_env(env)
    assert lock.base.digest == f"sha256:{hashlib.sha256(image.read_bytes()).hexdigest()}"
    assert (lock.base.python, lock.base.glibc, lock.base.has["numpy"]) == ("3.11.2", "2.36", "1.26.4")
    assert {one.name: one.via for one in lock.packages} == {"pure": (), "extra-one": ("pure",)}
    wheel = tmp_path / "wheels" / "pure-1.0-py3-none-any.whl"
    assert lock.packages[1].sha256 == hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_the_file_holds_modules_and_lock_and_is_named_by_its_checksum(tmp_path, made):
    write_wheel(tmp_path / "wheels", "pure", "1.0", scripts="pure-run")
    env = made("pure")
    tree = tree_of(env)
    assert tree.content(f"{SITE_IN}/pure/__init__.py") == b"VERSION = '1.0'\n"
    assert tree.content(f"/{LOCK}") == encode_lock(read_env(env)) == lock_file(env).read_bytes()
    assert tree.content("/bin/pure-run").startswith(b"#!/usr/bin/env python3\n")
    assert read_env(env).scripts == ("pure-run",)
    assert (tmp_path / "my.env.sha256").read_text().split()[0] == hashlib.sha256(env.read_bytes()).hexdigest()
    assert is_env(env)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="another Python compiles for another one")
def test_modules_are_compiled_once_for_each_wheel(tmp_path, made, monkeypatch):
    write_wheel(tmp_path / "wheels", "pure", "1.0")
    name = f"{SITE_IN}/pure/__pycache__/__init__.cpython-311.pyc"
    first = tree_of(made("pure"))
    assert first.content(name)[4] == 1, "unchecked hash"
    assert b"/opt/toolkit-env/lib/python3.11/site-packages/pure/__init__.py" in first.content(name)
    monkeypatch.setattr("toolkit.image.envs.modules._compiled", lambda *_: pytest.fail("compiled again"))
    again = tree_of(made("pure", name="again.env"))
    assert again.content(name) == first.content(name)


def test_equal_packages_make_equal_files(tmp_path, made):
    write_wheel(tmp_path / "wheels", "pure", "1.0")
    assert made("pure").read_bytes() == made("pure", name="other.env").read_bytes()


@every_row(
    ("requirement", "told"),
    [
        ("numpy<1.20", "numpy: the image has 1.26.4, but a requirement is numpy<1.20"),
        ("old", "numpy: the image has 1.26.4; the environment needs 1.19.5 because of old"),
    ],
)
def test_a_package_that_contradicts_the_image_is_refused(tmp_path, made, requirement, told):
    write_wheel(tmp_path / "wheels", "old", "1.0", "numpy<1.20")
    write_wheel(tmp_path / "wheels", "numpy", "1.19.5")
    with pytest.raises(CheckFailed) as error:
        made(requirement)
    assert error.value.message == told
    assert error.value.fix.endswith("`--replace numpy`")
    assert not (tmp_path / "my.env").exists()
    assert packages(made(requirement, replaceable=frozenset({"numpy"})))["numpy"] == "1.19.5"


def test_a_package_of_the_image_may_not_lose_what_it_needs(tmp_path, made):
    image = write_image(
        tmp_path / "needs.sif", {"numpy": "1.26.4", "torch": "2.5.1"}, {"torch": "numpy (>=1.21)"}
    )
    write_wheel(tmp_path / "wheels", "numpy", "1.19.5")
    with pytest.raises(CheckFailed, match="no set of packages"):
        made("numpy<1.20", image=image, replaceable=frozenset({"numpy"}))


def test_other_packages_of_the_image_are_hidden_if_they_have_to_be(tmp_path, made):
    write_wheel(tmp_path / "wheels", "six", "1.17.0")
    assert packages(made("six>=1.17")) == {"six": "1.17.0"}


def test_a_requirement_that_the_image_breaks_itself_does_not_count(tmp_path, made):
    image = write_image(tmp_path / "odd.sif", {"numpy": "1.26.4", "odd": "1"}, {"odd": "numpy>=3"})
    write_wheel(tmp_path / "wheels", "pure", "1.0", "odd")
    assert packages(made("pure", image=image)) == {"pure": "1.0"}


def test_wheels_for_another_python_or_a_newer_glibc_are_not_taken(tmp_path, made):
    for tag in ("cp312-cp312-manylinux_2_17_x86_64", "cp311-cp311-manylinux_2_38_x86_64"):
        write_wheel(tmp_path / "wheels", "binary", "2.0", tag=tag)
    write_wheel(tmp_path / "wheels", "binary", "1.0", tag="cp311-cp311-manylinux_2_28_x86_64")
    assert packages(made("binary")) == {"binary": "1.0"}


def test_another_hash_than_the_file_demands_is_refused(tmp_path, made):
    write_wheel(tmp_path / "wheels", "pure", "1.0")
    with pytest.raises(CheckFailed, match="pure: the file in the package index has none of the hashes"):
        made("pure==1.0", hashes={"pure": (f"sha256:{'0' * 64}",)})


def test_versions_stay_where_a_package_is_added(tmp_path, made):
    write_wheel(tmp_path / "wheels", "pure", "1.0")
    old = read_env(made("pure"))
    write_wheel(tmp_path / "wheels", "pure", "2.0")
    write_wheel(tmp_path / "wheels", "more", "1.0")
    new = read_env(made("pure", "more", earlier_lock=old))
    assert [(one.name, one.old, one.new) for one in changes(old, new)] == [("more", "", "1.0")]


def test_pth_files_are_read_at_a_start(tmp_path, made):
    write_wheel(tmp_path / "wheels", "pure", "1.0", files={"pure.pth": "import os\n"})
    starter = tree_of(made("pure")).content(f"{SITE_IN}/sitecustomize.py")
    site, added = tmp_path / "site", tmp_path / "added"
    site.mkdir()
    (site / "sitecustomize.py").write_bytes(starter)
    (site / "project.pth").write_text(f"{added}\n")
    added.mkdir()
    (added / "only_by_pth.py").write_text("")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", "import only_by_pth"]
    assert subprocess.run(command, env=environment, check=False).returncode == 0


def test_a_wheel_of_an_old_pre_release_is_not_taken_for_a_release_without_a_wheel(
    tmp_path, made, monkeypatch
):
    write_wheel(tmp_path / "wheels", "native", "0.3.dev5")
    write_source(tmp_path / "wheels")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(Missing, match=r"native 1\.0: no wheel fits the image"):
        made("native")
    assert packages(made("native==0.3.dev5"))["native"] == "0.3.dev5"


def write_source(folder):
    folder.mkdir(exist_ok=True)
    meta = b"Metadata-Version: 2.2\nName: native\nVersion: 1.0\n"
    project = b'[project]\nname = "native"\nversion = "1.0"\n'
    with tarfile.open(folder / "native-1.0.tar.gz", "w:gz") as tar:
        for name, text in (("PKG-INFO", meta), ("pyproject.toml", project)):
            entry = tarfile.TarInfo(f"native-1.0/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))


def test_a_source_distribution_is_named_where_it_cannot_be_built(tmp_path, made, monkeypatch):
    write_source(tmp_path / "wheels")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(
        Missing,
        match=r"native 1\.0: no wheel fits the image, and toolkit cannot build a wheel inside the image",
    ):
        made("native")


def test_a_full_disk_leaves_the_old_file(tmp_path, made, monkeypatch):
    write_wheel(tmp_path / "wheels", "pure", "1.0")
    old = made("pure").read_bytes()
    write_wheel(tmp_path / "wheels", "more", "1.0")

    def full(*_):
        raise OSError(28, os.strerror(28), str(tmp_path / "part"))

    monkeypatch.setattr("toolkit.image.envs.create.write_squashfs", full)
    with pytest.raises(CheckFailed, match="the disk is full"):
        made("more")
    assert (tmp_path / "my.env").read_bytes() == old
    assert not list(tmp_path.glob(".my.env*"))


def test_a_file_of_ones_own_is_not_replaced(tmp_path, made):
    (tmp_path / "my.env").write_text("NAME=secret\n")
    with pytest.raises(BadInput, match="is not an environment"):
        made("pure")


def test_a_changed_image_and_a_changed_file_are_told(tmp_path, made, image):
    write_wheel(tmp_path / "wheels", "pure", "1.0")
    env = made("pure")
    assert check_env(env, image, Silent()).ok
    write_image(image, {"numpy": "1.26.5", "six": "1.16.0"})
    checked = {one.name: one for one in check_env(env, image, Silent()).checks}
    assert checked["image"].told.startswith("the environment was made over centre.sif")
    assert checked["packages of the image"].told == "numpy: the lock has 1.26.4, the image has 1.26.5"
    with env.open("r+b") as file:
        file.seek(200)
        file.write(b"xx")
    assert not check_env(env, None, Silent()).checks[0].ok


def test_an_image_for_another_python_is_told_first(tmp_path, made):
    write_wheel(tmp_path / "wheels", "pure", "1.0")
    base = read_env(made("pure")).base
    assert differs(base, base.digest, "3.12.1", "2.36", "x86_64") == ""
    assert "Python 3.11, but the image has 3.12.1" in differs(base, "sha256:1", "3.12.1", "2.36", "x86_64")
    assert "glibc 2.36, but the image has 2.31" in differs(base, "sha256:1", "3.11.9", "2.31", "x86_64")
    assert "for aarch64" in differs(base, "sha256:1", "3.11.2", "2.36", "aarch64")


def test_an_image_without_python_is_refused(tmp_path, made):
    bare = tmp_path / "bare.sif"
    bare.write_bytes(sif(squashfs({"/etc/os-release": b"ID=x\n", "/bin/sh": b""})))
    with pytest.raises(BadInput, match="has no Python 3"):
        made("pure", image=bare)


@every_row("content", [b"", b"hsqs", b"NAME=1\n", b"hsqs" + bytes(200)])
def test_what_is_not_an_environment_is_refused(tmp_path, content):
    file = tmp_path / "x.env"
    file.write_bytes(content)
    with pytest.raises((BadInput, CheckFailed)):
        read_env(file)
    assert not is_env(file)


def test_the_lock_survives_a_round_trip(tmp_path, made):
    write_wheel(tmp_path / "wheels", "pure", "1.0")
    lock = read_env(made("pure"))
    assert msgspec.json.decode(encode_lock(lock), type=type(lock)) == lock
