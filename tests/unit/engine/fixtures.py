"""Collect the test cases of all rules: cases that fire a rule, that must not fire it, or leave it undecided.

A module in ``tests/unit/engine/rules`` may have four tables with the ids of rules as keys. ``FIRES``,
``QUIET`` and ``UNDECIDED`` have the cases. ``OUTCOMES`` has the outcome of the launch in the first case that
fires the rule.
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
    """Return three tables of cases by rule: cases that fire it, that do not fire it, and that leave it
    undecided.
    """
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
    """Return, by rule, the predicted outcome of the first case that fires the rule."""
    found: dict[str, str] = {}
    for module in _modules():
        found |= getattr(module, "OUTCOMES", {})
    return found
