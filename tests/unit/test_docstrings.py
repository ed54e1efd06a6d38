"""Test that examples in docstrings give the shown results."""

import doctest
import importlib
from pathlib import Path

from tests.unit.tables import every_row

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "toolkit").rglob("*.py"))
    if "\n    >>> " in path.read_text(encoding="utf-8")
]


@every_row("name", MODULES)
def test_an_example_gives_what_it_shows(name: str):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed
