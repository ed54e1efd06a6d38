"""The package stays easy to search: small folders and modules, and one meaning for a name of a class."""

import ast
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES_OF_A_FOLDER = 25
"""Beside ``__init__.py``, which only describes the folder."""


@cache
def trees() -> dict[str, ast.Module]:
    """Return the modules of the package by their path."""
    files = sorted((ROOT / "toolkit").rglob("*.py"))
    return {str(file.relative_to(ROOT)): ast.parse(file.read_text()) for file in files}


def test_no_folder_holds_many_modules():
    folders = Counter(path.rpartition("/")[0] for path in trees() if not path.endswith("/__init__.py"))
    assert {folder: count for folder, count in folders.items() if count > MODULES_OF_A_FOLDER} == {}


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
