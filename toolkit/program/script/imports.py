"""Find the imports of a module, and decide which imports are optional for the program."""

import ast
from collections.abc import Iterator

from toolkit.program.script.facts import Import
from toolkit.program.script.names import Names, imported_module

_ANSWERS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_NEVER_RUN = {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imports_of(tree: ast.Module, names: Names, file: str) -> Iterator[Import]:
    """Yield the modules that a module imports; a relative name starts with dots, as in ``..model``."""
    yield from _imports(tree.body, names, file, optional=False)


def _imports(body: list[ast.stmt], names: Names, file: str, *, optional: bool) -> Iterator[Import]:
    for statement in body:
        yield from _statement(statement, names, file, optional=optional)


def _statement(node: ast.AST, names: Names, file: str, *, optional: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, file, node.lineno, optional) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names_taken = tuple(alias.name for alias in node.names)
        yield Import("." * node.level + (node.module or ""), file, node.lineno, optional, names_taken)
    elif isinstance(node, ast.Try | ast.TryStar):
        answered = optional or any(_answers(handler, names) for handler in node.handlers)
        yield from _imports(node.body, names, file, optional=answered)
        rest = [*(s for h in node.handlers for s in h.body), *node.orelse, *node.finalbody]
        # Imports in an ``except`` block are optional, because they usually import a replacement.
        yield from _imports(rest, names, file, optional=True)
    elif isinstance(node, ast.If):
        yield from _branches(node, names, file, optional=optional)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _imports(node.body, names, file, optional=True)
    elif isinstance(node, ast.Call) and (module := imported_module(node, names)):
        yield Import(module, file, node.lineno, optional)
        yield from _children(node, names, file, optional=optional)
    else:
        yield from _children(node, names, file, optional=optional)


def _branches(node: ast.If, names: Names, file: str, *, optional: bool) -> Iterator[Import]:
    """Yield the imports in both branches of an ``if``, except in the body of ``if TYPE_CHECKING``, which
    never runs. The function assumes that the test ``__name__ == "__main__"`` is true.
    """
    never = names.dotted_name(node.test) in _NEVER_RUN
    test = node.test
    main = isinstance(test, ast.Compare) and names.dotted_name(test.left) == "__name__"
    if not never:
        yield from _imports(node.body, names, file, optional=optional or not main)
    yield from _imports(node.orelse, names, file, optional=optional or not never)


def _children(node: ast.AST, names: Names, file: str, *, optional: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        yield from _statement(child, names, file, optional=optional)


def _answers(handler: ast.ExceptHandler, names: Names) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(names.dotted_name(one) in _ANSWERS for one in caught)
