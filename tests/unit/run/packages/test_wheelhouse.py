import hashlib
import importlib.metadata
import subprocess
import sys
import zipfile

import pytest
import uv

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.model.progress import Silent
from toolkit.run.packages.wheelhouse import gather, rebuild_wheel, requirements


def test_what_toolkit_needs_is_named_with_its_version():
    found = requirements()
    assert found["click"] == importlib.metadata.version("click")
    assert "urllib3" in found  # a dependency of docker and requests
    assert "pytest" not in found  # a dependency of an extra


def test_a_wheel_is_made_again_from_what_is_installed(tmp_path):
    distribution = importlib.metadata.distribution("click")
    first = rebuild_wheel(distribution, tmp_path)
    bytes_of_first = first.read_bytes()
    assert rebuild_wheel(distribution, tmp_path).read_bytes() == bytes_of_first
    target = tmp_path / "there"
    words = ("pip", "install", "--quiet", "--offline", "--no-index", "--no-deps", "--target", str(target))
    there = ("--python", sys.executable)
    subprocess.run([uv.find_uv_bin(), *words, *there, str(first)], check=True, timeout=120)
    said = hashlib.sha256((target / "click" / "core.py").read_bytes()).hexdigest()
    assert said == hashlib.sha256(distribution.locate_file("click/core.py").read_bytes()).hexdigest()
    with zipfile.ZipFile(first) as archive:
        assert archive.testzip() is None


def test_a_wheel_whose_name_has_hyphens_is_named_as_pip_reads_it(tmp_path):
    distribution = importlib.metadata.distribution("import-linter")
    wheel = rebuild_wheel(distribution, tmp_path)
    stem = f"import_linter-{distribution.version}"
    assert wheel.name == f"{stem}-py3-none-any.whl"
    assert f"{stem}.dist-info/METADATA" in zipfile.ZipFile(wheel).namelist()


@every_row("python", ["3.10", "2.7", "3", "3.11.2", "x"])
def test_a_python_that_is_too_old_or_none(tmp_path, python):
    with pytest.raises(BadInput, match=r"expected MAJOR\.MINOR, at least 3\.11"):
        gather(tmp_path, (python,), "x86_64", Silent())
