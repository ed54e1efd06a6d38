"""Collect the test cases of all rules from the modules in ``tests/unit/engine/rules``.

The tables ``FIRES``, ``QUIET`` and ``UNDECIDED`` of a module have lists of launches, by a rule's id.
``OUTCOMES`` has the predicted outcome of the first launch in ``FIRES``.
"""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

import tests.unit.engine.rules as here
from toolkit.engine.case import Case

Table = dict[str, list[Case]]


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(here.__path__):
        yield import_module(f"{here.__name__}.{found.name}")


@cache
def tables() -> tuple[Table, Table, Table]:
    """Return three tables of launches, by rule: the rule fires, does not fire, or is undecided."""
    fires: Table = {}
    quiet: Table = {}
    undecided: Table = {}
    for module in _modules():
        for table, wanted in ((fires, "FIRES"), (quiet, "QUIET"), (undecided, "UNDECIDED")):
            for rule, cases in getattr(module, wanted, {}).items():
                table.setdefault(rule, []).extend(cases)
    return fires, quiet, undecided


@cache
def outcomes() -> dict[str, str]:
    found: dict[str, str] = {}
    for module in _modules():
        found |= getattr(module, "OUTCOMES", {})
    return found
