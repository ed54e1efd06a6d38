"""In a module, find calls that connect the ranks, and calls that may run code that toolkit cannot read."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache

from toolkit.knowledge.joins import joins
from toolkit.program.script.names import Names, imported_module


@dataclass(slots=True)
class ModuleJoins:
    """How a module connects its ranks.

    ``joins`` lists the libraries that connect the ranks. ``hidden`` lists calls that may run code that
    toolkit cannot read. ``ranks`` lists environment variables with facts about a rank, such as ``RANK``, if
    the module contains their names. ``trainer`` is true if the module runs one of toolkit's trainers.
    """

    joins: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    ranks: set[str] = field(default_factory=set)
    trainer: bool = False


def found_in(tree: ast.Module, names: Names) -> ModuleJoins:
    """Return how a module connects its ranks, and which calls may run code that toolkit cannot read."""
    result = ModuleJoins()
    variables = frozenset(joins().ranks.variables)
    whole = (alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
    for meaning in (*names.meanings.values(), *names.stars, *whole):
        result.joins.update(join for join, one in _imports() if one.fullmatch(meaning))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _look_at_call(node, names, result)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in variables:
            result.ranks.add(node.value)
        if isinstance(node, ast.Attribute | ast.Name):
            for name in names.readings(node):
                result.joins.update(join for join, one in _calls() if one.fullmatch(name))
    return result


def _look_at_call(call: ast.Call, names: Names, result: ModuleJoins) -> None:
    name = names.dotted_name(call.func)
    result.trainer |= name == "toolkit.trainers.command.run"
    if imported_module(call, names) == "":
        result.hidden.add(f"line {call.lineno}: {name}() loads a module whose name is known only at run time")
    elif name and _hidden().fullmatch(name) and not _harmless(call):
        result.hidden.add(f"line {call.lineno}: {name} may run code that toolkit cannot read")


def _harmless(call: ast.Call) -> bool:
    """Return whether a call starts a program, such as ``git``, that never connects ranks."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.List | ast.Tuple) and first.elts:
        first = first.elts[0]
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str) or not first.value.split():
        return False
    return first.value.split()[0] in joins().hidden.harmless


@cache
def _calls() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(_compile_patterns((row.name, call) for row in joins().join for call in row.calls))


@cache
def _imports() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(_compile_patterns((row.name, module) for row in joins().join for module in row.imports))


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile("|".join(translate(call) for call in joins().hidden.calls))


def _compile_patterns(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, re.Pattern[str]]]:
    return ((name, re.compile(translate(pattern))) for name, pattern in pairs)
