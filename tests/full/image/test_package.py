"""Test the wheel: it works without the checkout, and can also be built from the source distribution."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.built import ROOT, STEM, python, wheel_of


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    python("-m", "hatchling", "build", "-t", "sdist", "-d", str(folder))
    (archive,) = folder.glob(f"{STEM}-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def files(*folders):
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
    for name in files("scripts", "tests", "docs", "containers", "recipes", "slurm", "share", "toolkit"):
        assert (unpacked / name).is_file(), name
    assert (unpacked / "Makefile").is_file()
    assert (unpacked / "mkdocs.yml").is_file()


def test_the_source_archive_makes_the_same_wheel(unpacked, wheel, tmp_path):
    assert names(wheel_of(unpacked, tmp_path)) == names(wheel)


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fresh")
    python("-m", "venv", "--without-pip", str(folder))
    python("-m", "pip", "--python", str(folder), "install", "--no-deps", "--quiet", str(wheel))
    return folder


def run(*words, **env):
    done = subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done


def test_manual_pages_and_completion_are_installed_into_their_places(fresh):
    for name in files("share"):
        assert (fresh / name).read_bytes() == (ROOT / name).read_bytes(), name
    for name in ("toolkit", "toolkit-launch", "toolkit-image-build"):
        assert (fresh / "share" / "man" / "man1" / f"{name}.1").is_file()


RENDERERS = {
    "man": ("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"),
    "groff": ("groff", "-man", "-ww", "-K", "utf8", "-T", "utf8", "-Z"),
    "mandoc": ("mandoc", "-W", "warning,stop"),
}


def test_manual_pages_are_rendered_without_a_warning(fresh):
    pages = sorted((fresh / "share" / "man" / "man1").glob("*.1"))
    assert len(pages) > 40
    for words in (words for name, words in RENDERERS.items() if shutil.which(name)):
        for page in pages:
            done = run(*words, str(page))
            assert done.stderr == "", page.name
            assert len(done.stdout) > 200, page.name


def test_man_finds_the_pages_of_a_program_that_is_on_path(fresh):
    if man := shutil.which("man"):
        path = f"{fresh / 'bin'}:{os.environ['PATH']}"
        told = run(man, "-w", "toolkit-launch", PATH=path, MANPATH="").stdout.strip()
        assert told == str(fresh / "share" / "man" / "man1" / "toolkit-launch.1")


def test_bash_completes_with_the_installed_file(fresh):
    script = fresh / "share" / "bash-completion" / "completions" / "toolkit"
    asked = "COMP_WORDS=(toolkit image s); COMP_CWORD=2; _toolkit_completion toolkit; echo ${COMPREPLY[@]}"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    told = run("bash", "--norc", "-c", f"source {script}; {asked}", PATH=path).stdout.split()
    assert {"show", "solve", "sif", "sign"} <= set(told)
    assert "build" not in told


@pytest.mark.parametrize(
    ("shell", "file"),
    [("zsh", "zsh/site-functions/_toolkit"), ("fish", "fish/vendor_completions.d/toolkit.fish")],
)
def test_other_shells_read_their_completion(fresh, shell, file):
    if program := shutil.which(shell):
        assert run(program, "-n", str(fresh / "share" / file)).stderr == ""
