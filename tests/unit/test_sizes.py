"""Test the sizes of folders, modules and functions, and that each class name has one meaning."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES_OF_A_FOLDER = 25
"""The largest number of modules in a folder, without ``__init__.py``."""
LINES_OF_A_MODULE = 400
LINES_OF_A_FUNCTION = 40
"""The largest number of lines of a function, without its signature and docstring."""


CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)


@cache
def modules() -> dict[str, str]:
    files = sorted((ROOT / "toolkit").rglob("*.py"))
    return {str(file.relative_to(ROOT)): file.read_text() for file in files}


def test_no_folder_holds_many_modules():
    folders = Counter(path.rpartition("/")[0] for path in modules() if not path.endswith("/__init__.py"))
    assert {folder: count for folder, count in folders.items() if count > MODULES_OF_A_FOLDER} == {}


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path, text in modules().items():
        for name in CLASS.findall(text):
            places[name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_a_class_is_found_wherever_it_is_defined():
    text = (
        "class One:\n    class Two(One):\n        pass\nif x:\n\tclass\tThree[T]: ...\n# a class of its own\n"
    )
    assert CLASS.findall(text) == ["One", "Two", "Three"]


def test_modules_are_short():
    lengths = {path: len(text.splitlines()) for path, text in modules().items()}
    assert {path: length for path, length in lengths.items() if length > LINES_OF_A_MODULE} == {}


def code_lines(function: ast.FunctionDef) -> int:
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return function.end_lineno - first.lineno + 1
    return function.end_lineno - first.end_lineno


def test_functions_are_short():
    long = {
        f"{path}:{node.name}": code_lines(node)
        for path, text in modules().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and code_lines(node) > LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_the_lines_of_a_function_are_its_code():
    (node,) = ast.parse(
        'def one(\n    x: int,\n):\n    """Say.\n\n    More.\n    """\n    x += 1\n    return x\n'
    ).body
    assert code_lines(node) == 2
    (node,) = ast.parse("def two(x):\n    x += 1\n    return x\n").body
    assert code_lines(node) == 2
