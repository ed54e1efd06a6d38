"""Test how toolkit reads each kind of requirements file, and what it refuses."""

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.image.envs.conda import of_conda
from toolkit.image.envs.requirements import read_requirements

WHEEL = "attrs-25.4.0-py3-none-any.whl"


def test_a_requirements_file(tmp_path):
    (tmp_path / "more.txt").write_text("scipy\n")
    (tmp_path / "bound.txt").write_text("scipy<2\n")
    (tmp_path / "proj" / "src").mkdir(parents=True)
    (tmp_path / "proj" / "pyproject.toml").write_text(
        '[project]\nname = "p"\nversion = "1"\ndependencies = ["attrs"]\n'
    )
    file = tmp_path / "requirements.txt"
    file.write_text(
        "# ours\nrich>=13  # pretty\npandas[excel]==2.2 ; python_version < '4' \\\n"
        "    --hash=sha256:abc \\\n    --hash=sha256:def\n"
        "-r more.txt\n-c bound.txt\n-e ./proj\n--extra-index-url https://a.invalid/simple\n--pre\n"
    )
    found = read_requirements(file)
    assert found.requirements == ("rich>=13", "pandas[excel]==2.2 ; python_version < '4'", "scipy", "attrs")
    assert found.constraints == ("scipy<2",)
    assert found.hashes == {"pandas": ("sha256:abc", "sha256:def")}
    assert found.options == ("--index", "https://a.invalid/simple", "--prerelease", "allow")
    assert found.code_folders == (str(tmp_path / "proj" / "src"),)


@every_row(
    ("text", "told"),
    [
        ("rich\n--trusted-host x\n", r":2: `--trusted-host` is an option that toolkit does not support"),
        ("rich >> 3\n", r":1: 'rich >> 3' is not a requirement"),
        ("\n-r gone.txt\n", "gone.txt"),
        ("-e ./gone\n", r":1: \./gone is not a folder"),
    ],
)
def test_a_line_that_cannot_be_followed_is_named(tmp_path, text, told):
    file = tmp_path / "requirements.txt"
    file.write_text(text)
    with pytest.raises(BadInput, match=told):
        read_requirements(file)


def test_a_project(tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "p"\nversion = "1"\ndependencies = ["attrs>=23"]\n')
    found = read_requirements(file)
    assert (found.requirements, found.code_folders) == (("attrs>=23",), (str(tmp_path),))
    file.write_text('[project]\nname = "p"\ndynamic = ["version", "dependencies"]\n')
    with pytest.raises(BadInput, match="the dependencies are dynamic"):
        read_requirements(file)


def test_a_lock_of_uv(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["attrs"]\n'
    )
    lock = tmp_path / "uv.lock"
    lock.write_text(
        'version = 1\nrevision = 3\nrequires-python = ">=3.11"\n\n'
        '[[package]]\nname = "attrs"\nversion = "25.4.0"\n'
        'source = { registry = "https://a.invalid/simple" }\n'
        f'wheels = [{{ url = "https://a.invalid/{WHEEL}", hash = "sha256:{"ab" * 32}" }}]\n\n'
        '[[package]]\nname = "p"\nversion = "1"\nsource = { virtual = "." }\n'
        'dependencies = [{ name = "attrs" }]\n\n[package.metadata]\nrequires-dist = [{ name = "attrs" }]\n'
    )
    found = read_requirements(lock)
    assert found.requirements == ("attrs==25.4.0",)
    assert found.hashes == {"attrs": (f"sha256:{'ab' * 32}",)}
    assert found.code_folders == (str(tmp_path),)


def test_a_python_package_of_conda_is_not_taken_for_a_library_of_the_system():
    found = of_conda("dependencies: [librosa, netcdf4, libnetcdf, boost, boost-histogram, ffmpeg]", "e.yml")
    assert found.requirements == ("librosa", "netcdf4", "boost-histogram")
    assert sorted(found.omissions) == ["boost", "ffmpeg", "libnetcdf"]


def test_a_conda_environment():
    text = """
name: x
channels: [conda-forge]
dependencies:
  - python=3.11
  - numpy=1.26
  - pandas>=2.1,<3
  - conda-forge::pytorch=2.5=*_cpu
  - scipy 1.14.*
  - cudatoolkit=11.8
  - openmpi
  - pip
  - pip: [einops, "rich==13.9"]
"""
    found = of_conda(text, "environment.yml")
    assert found.requirements == ("numpy==1.26.*", "pandas>=2.1,<3", "torch==2.5.*", "scipy==1.14.*")
    assert found.pip == ("einops", "rich==13.9")
    assert set(found.omissions) == {"python=3.11", "cudatoolkit=11.8", "openmpi", "pip"}
    assert "the image must contain it" in found.omissions["openmpi"]


@every_row("text", ["[", "a: 1", "dependencies: {a: 1}", "dependencies: [[1]]"])
def test_what_is_not_a_conda_environment_is_refused(text):
    with pytest.raises(BadInput, match=r"-f environment\.yml"):
        of_conda(text, "environment.yml")
