"""Find the variables and arguments with which a script says where its ranks find each other (rendezvous)."""

import ast
from collections.abc import Iterator

from toolkit.knowledge.joins import SayingCall, joins
from toolkit.program.script.names import Names

COMPUTED_VALUE = "$"
"""The mark that replaces the value of an argument if the program computes the value at run time."""
_ENVIRONMENT = "os.environ"
_BRANCHES = (ast.If, ast.Try, ast.TryStar, ast.Match, ast.IfExp, ast.While)


def rendezvous_in(tree: ast.Module, names: Names) -> dict[str, str]:
    """Return the rendezvous settings in a module: the names and values of environment variables, such as
    ``MASTER_PORT``, and of arguments, such as ``init_method``.

    The result omits settings under ``if`` and other conditions, because such settings may not apply.
    """
    found: dict[str, str] = {}
    for node in _plain(tree):
        if isinstance(node, ast.Assign):
            found |= dict(_assigned_variables(node, names))
        elif isinstance(node, ast.Call):
            found |= dict(_of_call(node, names))
    return found


def _plain(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the syntax nodes of a module that are not under a condition. The nodes under ``if __name__ ==
    "__main__"`` are part of the result.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _BRANCHES) and not _is_main(child):
            continue
        yield child
        yield from _plain(child)


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in {
        one.id for one in ast.walk(node.test) if isinstance(one, ast.Name)
    }


def _assigned_variables(node: ast.Assign, names: Names) -> Iterator[tuple[str, str]]:
    """Yield the variable and the value of assignments such as ``os.environ["MASTER_ADDR"] = "localhost"``."""
    for target in node.targets:
        if isinstance(target, ast.Subscript) and names.dotted_name(target.value) == _ENVIRONMENT:
            yield from _variable(target.slice, node.value)


def _of_call(call: ast.Call, names: Names) -> Iterator[tuple[str, str]]:
    name = names.dotted_name(call.func)
    if name == f"{_ENVIRONMENT}.update":
        for argument in call.args:
            if isinstance(argument, ast.Dict):
                for key, value in zip(argument.keys, argument.values, strict=True):
                    yield from _variable(key, value)
        for keyword in call.keywords:
            yield from _variable(ast.Constant(keyword.arg), keyword.value)
    for row in joins().says.call:
        if name in row.calls:
            yield from _arguments(call, row)


def _variable(name: ast.expr | None, value: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(name, ast.Constant) and name.value in joins().says.variables:
        text = _text(value)
        if text != COMPUTED_VALUE:
            yield str(name.value), text


def _arguments(call: ast.Call, row: SayingCall) -> Iterator[tuple[str, str]]:
    if row.says:
        yield row.says, COMPUTED_VALUE
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    for argument, place in row.arguments.items():
        value = given.get(argument) or (call.args[place] if place < len(call.args) else None)
        if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            yield f"{row.says}_{argument}".lstrip("_"), _text(value)


def _text(value: ast.expr) -> str:
    """Return a literal as text, or :data:`COMPUTED_VALUE` for any other expression."""
    known = isinstance(value, ast.Constant) and isinstance(value.value, str | int)
    return str(value.value) if known and isinstance(value, ast.Constant) else COMPUTED_VALUE
