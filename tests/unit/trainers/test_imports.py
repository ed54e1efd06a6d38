"""Test that the trainers' modules have no import cycle, including imports for types and in functions."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from toolkit import trainers

FOLDER = Path(trainers.__file__).parent


def modules():
    parts = {file: file.relative_to(FOLDER).with_suffix("").parts for file in FOLDER.rglob("*.py")}
    return {
        ".".join(("toolkit", "trainers", *(part for part in found if part != "__init__"))): file
        for file, found in parts.items()
    }


def imported(file, known):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from (name for name in ((inner if inner in known else node.module),) if name in known)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


def test_no_modules_import_each_other_in_a_circle():
    known = modules()
    graph = {name: set(imported(file, known)) for name, file in known.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("toolkit.trainers.kinds") < order.index("toolkit.trainers.ranks.world")
