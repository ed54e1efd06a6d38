"""What is published: the wheel works without the checkout, and is built from the source archive as well."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.integration.program import ROOT

pytestmark = pytest.mark.integration


def python(*words, folder=ROOT, **env):
    words = [sys.executable, *words]
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def wheel_of(source, folder):
    python("-m", "pip", "wheel", str(source), "--no-deps", "--no-build-isolation", "-w", str(folder))
    (wheel,) = folder.glob("toolkit-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The source archive, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    python("-m", "hatchling", "build", "-t", "sdist", "-d", str(folder))
    (archive,) = folder.glob("toolkit-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def files(*folders):
    """The files of the checkout in these folders, but for what Python leaves there."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return {str(p.relative_to(ROOT)) for p in found if p.is_file() and "__pycache__" not in p.parts}


def names(wheel):
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_the_program_and_all_of_its_data(wheel):
    wanted = {f"toolkit/_data/{name}" for name in files("containers", "recipes", "slurm")}
    assert wanted
    assert files("toolkit") | wanted <= names(wheel)


def test_the_program_works_from_the_wheel_alone(wheel, tmp_path):
    site = tmp_path / "site"
    python("-m", "pip", "install", "--no-deps", "--quiet", "--target", str(site), str(wheel))

    def toolkit(*words):
        return python("-m", "toolkit", *words, folder=tmp_path, PYTHONPATH=str(site))

    where = python("-c", "import toolkit; print(toolkit.__file__)", folder=tmp_path, PYTHONPATH=str(site))
    assert Path(where.strip()).is_relative_to(site)
    golden = ROOT / "tests" / "golden" / "tf2.15-cpu.Dockerfile"
    assert toolkit("image", "render", "tf2.15-cpu") == golden.read_text()
    assert "mnist" in toolkit("data", "list")
    assert toolkit("probe", "--json")
    code = "from toolkit.cluster import files, image; image.context(); print(len(files.code_files()))"
    assert int(python("-c", code, folder=tmp_path, PYTHONPATH=str(site))) > 100


def test_the_source_archive_holds_what_make_needs(unpacked):
    for name in files("scripts", "tests", "docs", "containers", "recipes", "slurm", "toolkit"):
        assert (unpacked / name).is_file(), name
    assert (unpacked / "Makefile").is_file()


def test_the_source_archive_makes_the_same_wheel(unpacked, wheel, tmp_path):
    assert names(wheel_of(unpacked, tmp_path)) == names(wheel)
