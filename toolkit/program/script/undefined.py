"""Find names that a module uses but does not define. Evaluating an undefined name makes a program fail."""

import ast
import builtins
from collections.abc import Iterator

from toolkit.near import suggest_near

_ALWAYS = {
    *dir(builtins), "__file__", "__name__", "__doc__", "__package__", "__spec__", "__loader__", "__path__",
    "__builtins__", "__class__", "__annotations__", "__module__", "__qualname__", "__dict__", "__cached__",
    "WindowsError", "reveal_type", "reveal_locals",
}  # fmt: skip
_OLD = {"unicode", "xrange", "raw_input", "basestring", "long", "reduce", "unichr", "file", "execfile", "cmp"}
"""Names of Python 2. toolkit ignores these names, because a program may check for Python 2 before it uses
them.
"""
_OPEN = {"exec", "eval", "globals", "locals", "vars", "__import__"}
"""Calls that may define names at run time."""


def undefined_names(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Yield each undefined name, the number of the first line that uses the name, and a hint. The hint names
    a similar name that is defined; without such a name, the hint is empty.

    The function treats a name as defined if any scope of the module defines the name. For a module that may
    define names at run time, the function yields no names.
    """
    bound = set(_bound(tree))
    if "*" in bound:
        return
    guarded = set(_guarded_nodes(tree))
    told: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _OPEN:
            return
    loads = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    for node in sorted(loads, key=lambda n: n.lineno):
        if node.id in bound or node.id in _ALWAYS or node.id in _OLD or node.id in told or node in guarded:
            continue
        told.add(node.id)
        yield node.id, node.lineno, suggest_near(node.id, {*bound, *dir(builtins)})


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names


def _guarded_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes in ``try`` blocks whose handlers catch ``NameError`` or all exceptions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try | ast.TryStar) and any(_catches(handler) for handler in node.handlers):
            for statement in node.body:
                yield from ast.walk(statement)


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = [n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)]
    return bool({"NameError", "Exception", "BaseException"} & set(names))
