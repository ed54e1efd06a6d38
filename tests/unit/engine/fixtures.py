"""Find the cases of every rule: cases that fire it, that must not fire it, and that leave it undecided.

A module of ``tests/unit/engine/rules`` may have four tables by the id of a rule: ``FIRES``, ``QUIET`` and
``UNDECIDED`` hold its cases, and ``OUTCOMES`` the outcome of the launch in the first case that fires it.
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
    """Return all cases: those that fire a rule, those that do not, those that leave it undecided."""
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
    """Return the outcome of the launch in the first case that fires each rule which decides."""
    found: dict[str, str] = {}
    for module in _modules():
        found |= getattr(module, "OUTCOMES", {})
    return found
