"""Test the error message if an old Python runs toolkit from a checkout."""

import ast
import os
import re
import subprocess
import sys
import tomllib

from tests.built import ROOT
from tests.old_pythons import old_pythons
from tests.unit.tables import every_row
from toolkit.versions import OLDEST_PYTHON

ENTRY = ROOT / "toolkit" / "__main__.py"
_PRETENDED = """
import runpy, sys
sys.version_info = {version}
sys.argv = ["toolkit", "--help"]
runpy.run_module("toolkit", run_name="__main__")
"""


def told(words):
    # Python 2 writes its compiled modules beside the sources.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: toolkit needs Python {OLDEST_PYTHON} or later; this is ")
    assert f"uv tool install --python {OLDEST_PYTHON} '{ROOT}'" in line
    return line


@every_row(
    "version",
    [(2, 7, 18, "final", 0), (3, 6, 8, "final", 0), (3, 9, 18, "final", 0), (3, 10, 99, "final", 0)],
)
def test_an_old_python_is_told_what_to_do_in_one_line(version):
    line = told([sys.executable, "-c", _PRETENDED.format(version=version)])
    assert f"this is {version[0]}.{version[1]}.{version[2]};" in line


def test_the_old_pythons_of_this_machine_are_told_so():
    for python in old_pythons():
        assert re.search(r"this is [23]\.\d+\.\d+;", told([python, "-m", "toolkit", "--help"]))


@every_row("name", ["__init__.py", "__main__.py"])
def test_old_pythons_can_parse_what_they_are_started_with(name):
    tree = ast.parse((ENTRY.parent / name).read_text(), feature_version=(3, 4))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.FunctionDef, ast.Match, ast.NamedExpr, ast.Starred)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]


def test_the_oldest_python_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={OLDEST_PYTHON}"
    assert f"sys.version_info < ({OLDEST_PYTHON.replace('.', ', ')})" in ENTRY.read_text()
