"""Test which module folders of a program toolkit finds in the program's text."""

import zipfile

import pytest

from tests.unit.tables import every_row
from toolkit.program.command import read_command

FOUND = (
    "import sys\nsys.path.append('lib')",
    "import sys\nsys.path.insert(0, './lib')",
    "import sys, os\nsys.path.append(os.path.join(os.getcwd(), 'lib'))",
    "import sys, os\nhere = os.path.dirname(__file__)\nsys.path.append(os.path.join(here, '..', 'lib'))",
    "from sys import path\nfrom os.path import *\nimport sys, os\nsys.path += [os.path.join('.', 'lib')]",
    "import sys\nfrom os.path import dirname as up\nsys.path.append(up(up(__file__)) + '/lib')",
    "import sys, pathlib\nR = pathlib.Path(__file__).resolve().parents[1]\nsys.path += [str(R / 'lib')]",
    "import sys\nfrom pathlib import Path\nsys.path.insert(0, f'{Path(__file__).parent.parent}/lib')",
    "import sys, pathlib\nsys.path = [str(pathlib.Path.cwd().joinpath('lib'))] + sys.path",
    "import sys, os\nsys.path[0:0] = [os.path.normpath(os.path.dirname(__file__) + '/../lib')]",
    "import sys, os\nsys.path.extend((os.pardir, 'lib'))",
    "import site\nsite.addsitedir('lib')",
)  # fmt: skip
"""Statements with which ``scripts/train.py``, started in the project's folder, can import from ``lib``."""

OPEN = (
    "import sys, os\nsys.path.append(os.environ['CODE'])",
    "import sys\nfor folder in sys.argv[1:]:\n    sys.path.append(folder)",
    "import sys\nplace = 'lib'\nplace = place + 'x'\nsys.path.insert(0, place)",
)


@pytest.fixture(autouse=True)
def project(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "net.py").write_text("import cv2\nfrom mpi4py import MPI\n")
    return tmp_path


def facts(project, text, **more):
    (project / "scripts" / "train.py").write_text(f"{text}\nimport net\n")
    return read_command(["python", "scripts/train.py"], project, **more)


@every_row("text", FOUND)
def test_modules_of_a_folder_that_the_text_adds_are_read(text, project):
    shown = facts(project, text)
    assert shown.joins == {"mpi"}
    assert shown.facts[0].packages >= {"cv2"}
    assert "net" not in shown.facts[0].packages
    assert not shown.facts[0].open_path


@every_row("text", OPEN)
def test_a_folder_that_is_made_at_run_time_leaves_the_search_open(text, project):
    shown = facts(project, text)
    assert shown.facts[0].open_path
    assert shown.serial is None


def test_a_module_may_add_the_folder_for_the_modules_of_another(project):
    (project / "scripts" / "places.py").write_text(FOUND[6])
    assert facts(project, "import net\nimport places").joins == {"mpi"}


def test_a_change_of_the_path_that_does_not_hold_the_module_finds_nothing(project):
    assert "net" in facts(project, "import sys\nsys.path.append('library')").facts[0].packages


def test_python_path_of_the_job_and_of_the_command_count(project):
    assert facts(project, "", python_path="lib").joins == {"mpi"}
    words = ["env", "PYTHONPATH=lib", "python", "-m", "net"]
    assert read_command(words, project).joins == {"mpi"}


def test_a_shell_script_that_prepares_python_leaves_the_search_open(project):
    (project / "scripts" / "train.py").write_text("import net\n")
    for first in ("export PYTHONPATH=$PWD/lib", "source ~/venv/bin/activate", "conda activate tf"):
        (project / "run.sh").write_text(f"{first}\npython scripts/train.py\n")
        assert [one.open_path for one in read_command(["bash", "run.sh"], project).facts] == [True]
    (project / "run.sh").write_text("set -e\npython scripts/train.py\n")
    assert [one.open_path for one in read_command(["bash", "run.sh"], project).facts] == [False]


def test_an_archive_of_python_is_not_read_as_text(project):
    with zipfile.ZipFile(project / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "print(1)\n")
    shown = read_command(["python", "app.pyz"], project)
    assert shown.facts[0].faults == ()
    assert shown.unknown == ("app.pyz is an archive",)
