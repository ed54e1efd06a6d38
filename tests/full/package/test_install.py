"""Test the installation of the wheel with pip, uv and pipx, and with different Pythons."""

import platform
import subprocess
import sys
import time
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

from tests.built import ROOT, STEM, UV, of_a_user, ran, tried, wheel_of
from tests.old_pythons import old_pythons
from toolkit import DISTRIBUTION, __version__
from toolkit.versions import OLDEST_PYTHON

SECONDS = 15.0
"""Limit in seconds for uv to install the base package with a warm cache."""
NO_COMPILER = "/nonexistent"
"""A PATH without a compiler and without Python."""
PIPX = ("tool", "run", "--python", sys.executable, "--from", "pipx>=1.7", "pipx")
VERSION = f"toolkit ({DISTRIBUTION}) {__version__}\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def user(tmp_path):
    return of_a_user(tmp_path, NO_COMPILER)


def works(program: Path, folder: Path) -> None:
    env = {"HOME": str(folder), "PATH": NO_COMPILER}
    assert ran([str(program), "--version"], env, folder).stdout == VERSION
    golden = ROOT / "tests" / "golden" / "tf2.15-cpu.Dockerfile"
    assert ran([str(program), "image", "render", "tf2.15-cpu"], env, folder).stdout == golden.read_text()


def environment(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=300)
    return folder / "bin" / "python"


def metadata(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"{STEM}-{__version__}.dist-info/METADATA")
    return BytesParser().parsebytes(text)


def test_the_wheel_says_its_name_its_pythons_and_its_extras(wheel):
    said = metadata(wheel)
    assert wheel.name == f"{STEM}-{__version__}-py3-none-any.whl"
    assert (said["Name"], said["Requires-Python"]) == (DISTRIBUTION, f">={OLDEST_PYTHON}")
    assert set(said.get_all("Provides-Extra")) == {"dev", "docs", "plot", "train"}


def test_pip_installs_the_base_package_without_a_compiler(wheel, user, tmp_path):
    python = environment(tmp_path / "env")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    ran([*pip, "install", "--quiet", "--only-binary", ":all:", str(wheel)], user, tmp_path)
    assert "No broken requirements" in ran([*pip, "check"], user, tmp_path).stdout
    works(python.with_name("toolkit"), tmp_path)


def test_an_extra_brings_what_it_is_for(wheel, user, tmp_path):
    python = environment(tmp_path / "env")
    install = [UV, "pip", "install", "--quiet", "--no-build", "--python", str(python)]
    ran([*install, f"{wheel}[plot]"], user, tmp_path)
    code = "import toolkit.report.study.plots, matplotlib; print(toolkit.report.study.plots.__file__)"
    place = ran([str(python), "-c", code], user, tmp_path).stdout.strip()
    assert Path(place).is_relative_to(tmp_path / "env")


def test_the_extras_of_developers_name_what_the_index_has(wheel, user, tmp_path):
    """The extra `dev` includes the extra `docs` of the same distribution."""
    python = environment(tmp_path / "env")
    words = [UV, "pip", "install", "--dry-run", "--no-build", "--python", str(python), f"{wheel}[dev]"]
    said = ran(words, user, tmp_path).stderr
    for name in ("pytest", "mkdocs", "click-man", "matplotlib"):
        assert f" + {name}==" in said


def test_uv_installs_it_as_a_tool_in_a_few_seconds(wheel, user, tmp_path):
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    words = [UV, "tool", "install", "--no-build", "--force", "--reinstall-package", DISTRIBUTION]
    words += ["--python", sys.executable, str(wheel)]
    ran(words, user | folders, tmp_path)  # fills uv's cache
    ran([UV, "tool", "uninstall", DISTRIBUTION], user | folders, tmp_path)
    began = time.monotonic()
    ran(words, user | folders, tmp_path)
    assert time.monotonic() - began < SECONDS
    works(tmp_path / "bin" / "toolkit", tmp_path)
    assert (tmp_path / "tools" / DISTRIBUTION / "share" / "man" / "man1" / "toolkit.1").is_file()


def test_pipx_installs_it_with_its_manual_pages(wheel, user, tmp_path):
    folders = {f"PIPX_{name}": str(tmp_path / name.lower()) for name in ("HOME", "BIN_DIR", "MAN_DIR")}
    env = user | folders | {"PATH": "/usr/bin:/bin"}  # the start script of the program calls realpath
    ran([UV, *PIPX, "install", "--python", sys.executable, str(wheel)], env, tmp_path)
    works(tmp_path / "bin_dir" / "toolkit", tmp_path)
    assert (tmp_path / "man_dir" / "man1" / "toolkit.1").is_file()


@pytest.mark.parametrize("version", ["3.9", "3.10"])
def test_an_old_python_is_refused_by_requires_python(wheel, user, tmp_path, version):
    target = tmp_path / "target"
    words = [UV, "pip", "install", "--no-deps", "--python", sys.executable, "--python-version", version]
    done = tried([*words, "--target", str(target), str(wheel)], user, tmp_path)
    assert done.returncode != 0
    assert f"Python>={OLDEST_PYTHON}" in done.stderr
    assert not list(tmp_path.glob("target/toolkit"))


def test_the_pip_of_an_old_python_refuses_it(wheel, user, tmp_path):
    asked = [[python, "-m", "pip", "install", "--no-index", "--no-deps"] for python in old_pythons()]
    for words in asked:
        if tried([*words, "--help"], user, tmp_path).returncode:
            continue  # this Python has no pip, or does not run on this machine
        done = tried([*words, "--target", str(tmp_path / "target"), str(wheel)], user, tmp_path)
        assert done.returncode != 0, words
        assert "requires a different Python" in done.stderr or "requires Python" in done.stderr, done.stderr
        assert not list(tmp_path.glob("target/toolkit"))


def test_uv_takes_a_python_of_its_own_where_path_has_none(wheel, user, tmp_path):
    """Simulate a login node without Python; the tests' Python replaces the Python that uv would download."""
    name = f"cpython-{'.'.join(map(str, sys.version_info[:3]))}-linux-{platform.machine()}-gnu"
    managed = tmp_path / "managed" / name
    managed.mkdir(parents=True)
    for part in Path(sys.base_prefix).iterdir():
        (managed / part.name).symlink_to(part)
    folders = {
        "UV_PYTHON_INSTALL_DIR": str(managed.parent),
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
    }
    words = [UV, "tool", "install", "--managed-python", "--no-build", str(wheel)]
    ran(words, user | folders, tmp_path)
    works(tmp_path / "bin" / "toolkit", tmp_path)
