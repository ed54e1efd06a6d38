"""Test the import finder in the images: which modules it finds, and when it finds none."""

import marshal
import os
import subprocess
import sys
from importlib.util import MAGIC_NUMBER, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.data import shipped_folder

FINDER = Path(str(shipped_folder("containers"))) / "toolkit_modules.py"
_spec = spec_from_file_location("toolkit_modules", FINDER)
toolkit_modules = module_from_spec(_spec)
_spec.loader.exec_module(toolkit_modules)


@pytest.fixture
def site(tmp_path):
    """Return a folder of modules whose stored bytecode and source set ``FROM`` to different words."""
    site = tmp_path / "site"
    package = site / "pack"
    package.mkdir(parents=True)
    (package / "data.txt").write_text("some data")
    modules = [package / "__init__.py", package / "inner.py", site / "single.py"]
    for path in modules:
        path.write_text("FROM = 'source'\n")
    (package / "unlisted.py").write_text("FROM = 'source'\n")
    stored = marshal.dumps(compile("FROM = 'stored'", "stored", "exec"))
    (site / "toolkit_modules.py").write_bytes(FINDER.read_bytes())
    toolkit_modules.write(str(site / "toolkit_modules.bin"), [(str(path), stored) for path in modules])
    return site


def said(site, program, before=""):
    start = "import toolkit_modules; toolkit_modules.install()\n"
    path = os.pathsep.join(filter(None, (str(before), str(site))))
    env = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", start + program], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


FROM = "import pack, pack.inner, single; print(pack.FROM, pack.inner.FROM, single.FROM)"


def test_modules_and_packages_come_from_the_one_file(site):
    assert said(site, FROM) == ["stored"] * 3


def test_what_is_not_in_it_comes_from_its_folder(site):
    assert said(site, "import pack.unlisted; print(pack.unlisted.FROM)") == ["source"]


def test_a_module_knows_its_file_its_source_and_its_data(site):
    program = (
        "import inspect, pack, pack.inner\nfrom importlib.resources import files\n"
        "print(pack.inner.__file__, pack.__path__[0], files('pack').joinpath('data.txt').read_text(),"
        " inspect.getsource(pack.inner).strip())"
    )
    inner, package, *rest = said(site, program)
    assert (inner, package) == (str(site / "pack" / "inner.py"), str(site / "pack"))
    assert rest == ["some", "data", "FROM", "=", "'source'"]


def test_the_modules_of_a_package_can_be_listed(site):
    program = "import pkgutil, pack; print(*(m.name for m in pkgutil.iter_modules(pack.__path__)))"
    assert said(site, program) == ["inner", "unlisted"]


def test_a_folder_that_is_newer_is_read_as_usual(site):
    written = (site / "toolkit_modules.bin").stat().st_mtime
    os.utime(site / "pack", (written + 2, written + 2))
    assert said(site, FROM) == ["stored", "source", "stored"]


def test_what_stands_before_it_in_the_path_is_found_before_it(site, tmp_path):
    (tmp_path / "single.py").write_text("FROM = 'before'\n")
    assert said(site, FROM, before=tmp_path) == ["stored", "stored", "before"]


def test_a_program_that_closes_all_files_can_still_import(site):
    program = "import os\nos.closerange(3, 64)\nother = os.open('/dev/zero', os.O_RDONLY)\n" + FROM
    assert said(site, program) == ["stored"] * 3


@every_row(
    "content",
    [b"", MAGIC_NUMBER, b"\0\0\0\0" + b"x" * 40, MAGIC_NUMBER + (9).to_bytes(8, "little") + b"?" * 9],
    ids=["empty", "cut short", "another Python's", "damaged"],
)
def test_without_a_file_that_it_can_read_python_finds_its_modules_itself(site, content):
    (site / "toolkit_modules.bin").write_bytes(content)
    assert said(site, FROM) == ["source"] * 3


def test_without_the_file_too(site):
    (site / "toolkit_modules.bin").unlink()
    assert said(site, FROM) == ["source"] * 3
