"""Find the statements that a program certainly executes, including statements in the functions that the
program calls.

Statements in branches, loops and ``try`` blocks are not certain, because a program may skip them.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

_OPEN = (
    ast.If, ast.IfExp, ast.Try, ast.TryStar, ast.Match, ast.While, ast.For, ast.AsyncFor, ast.Lambda,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.ClassDef, ast.FunctionDef,
    ast.AsyncFunctionDef, ast.BoolOp, ast.Assert,
)  # fmt: skip
"""Types of syntax nodes whose parts the program may skip, repeat or execute later."""
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_EXITS = {"exit", "quit", "_exit", "abort"}


@dataclass(slots=True)
class _ReachedWalk:
    functions: dict[str, ast.FunctionDef]
    entered: set[str] = field(default_factory=set)


def reached_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the syntax nodes that a program certainly evaluates if no earlier statement fails.

    The test ``if __name__ == "__main__"`` counts as true, because Python runs the file as a program. A
    statement may leave its function, as ``return`` does, or end the program, as ``sys.exit()`` does. After
    such a statement, ``reached_nodes`` skips the rest of the function or module, which is not certain to run.
    """
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    functions = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and names.count(node.name) == 1 and not node.decorator_list
    }
    yield from _block(tree.body, _ReachedWalk(functions))


def _block(body: list[ast.stmt], walk: _ReachedWalk) -> Iterator[ast.AST]:
    for statement in body:
        if isinstance(statement, ast.If) and _is_main(statement.test):
            yield from _block(statement.body, walk)
        else:
            yield from _node(statement, walk)
        if _may_leave(statement):
            return


def _node(node: ast.AST, walk: _ReachedWalk) -> Iterator[ast.AST]:
    if isinstance(node, ast.With):
        for item in node.items:
            yield from _node(item, walk)
        yield from _block(node.body, walk)
        return
    if isinstance(node, _OPEN):
        return
    for child in ast.iter_child_nodes(node):
        yield from _node(child, walk)
    yield node
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    if name in walk.functions and name not in walk.entered:
        walk.entered.add(name)
        yield from _block(walk.functions[name].body, walk)


def _is_main(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Eq)
        and {"__name__", "__main__"} == {_word(test.left), _word(test.comparators[0])}
    )


def _word(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _may_leave(statement: ast.stmt) -> bool:
    """Return whether a statement may leave its function or end the program."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return any(isinstance(node, _LEAVES) or _exits(node) for node in ast.walk(statement))


def _exits(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = (
        called.attr
        if isinstance(called, ast.Attribute)
        else called.id
        if isinstance(called, ast.Name)
        else ""
    )
    return name in _EXITS
