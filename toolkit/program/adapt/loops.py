"""Find training loops over batches and epochs, and the arrays from which a loop takes batches as slices."""

import ast
from collections.abc import Iterator

from toolkit.program.adapt.flow import Flow
from toolkit.program.adapt.source import Function, method
from toolkit.program.adapt.work import Work

Loop = ast.For | ast.While


def loops_around(work: Work, node: ast.AST) -> list[Loop]:
    """Return the loops that run a syntax node, innermost first, including loops in functions that call the
    node's function.
    """
    found: list[Loop] = []
    seen: set[Function] = set()
    at: ast.AST | None = node
    while at is not None:
        function = work.source.function(at)
        found += [
            one
            for one in work.source.around(at)
            if isinstance(one, ast.For | ast.While) and work.source.function(one) is function
        ]
        if function is None or function in seen:
            break
        seen.add(function)
        calls = work.flow.calls_of(function)
        at = next((c for c in calls if work.source.function(c) is not function), None)
    return found


def batch_loop(work: Work, node: ast.AST) -> ast.For | None:
    """Return the innermost ``for`` loop that runs a syntax node, or ``None``.

    If the node is the backward pass of a training step, the loop usually iterates over batches.
    """
    return next((one for one in loops_around(work, node) if isinstance(one, ast.For)), None)


def loop_source(loop: ast.For) -> ast.expr:
    """Return the expression over which a loop iterates, without wrappers such as ``enumerate`` and ``tqdm``.
    For ``zip``, return the first argument.
    """
    found = loop.iter
    while isinstance(found, ast.Call) and found.args:
        name = found.func.id if isinstance(found.func, ast.Name) else method(found)
        if name not in {"enumerate", "tqdm", "trange", "zip", "track", "iter", "islice", "progress_bar"}:
            break
        found = found.args[0]
    return found


def is_count(loop: ast.For) -> bool:
    """Return whether a loop iterates over a range, such as ``range(epochs)``."""
    found = loop_source(loop)
    return (
        isinstance(found, ast.Call)
        and isinstance(found.func, ast.Name)
        and found.func.id in {"range", "trange"}
    )


def arrays_of(work: Work, loop: ast.For) -> list[ast.Name]:
    """Return the arrays from which a loop over indexes takes batches as slices, such as ``x[i : i + 32]``."""
    inside = set(_targets(loop.target))
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign):
            inside.update(name for target in node.targets for name in _targets(target))
    found: dict[str, ast.Name] = {}
    for node in ast.walk(loop):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and isinstance(node.ctx, ast.Load)
        ):
            used = {one.id for one in ast.walk(node.slice) if isinstance(one, ast.Name)}
            if used & inside and node.value.id not in inside and not _is_order(work.flow, node.value):
                found.setdefault(node.value.id, node.value)
    return sorted(found.values(), key=lambda one: (one.lineno, one.col_offset))


def _is_order(flow: Flow, name: ast.Name) -> bool:
    """Return whether a variable contains an order of indexes, such as a random permutation, instead of
    data.
    """
    return any(
        isinstance(one, ast.Call) and (method(one) in {"permutation", "randperm", "arange", "shuffle"})
        for one in flow.sources(name)
    )


def _targets(node: ast.expr) -> Iterator[str]:
    yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def share_arrays(work: Work, names: list[ast.Name], helper: str) -> bool:
    """After the last assignment to the arrays, insert a statement that replaces each array with this rank's
    part. ``helper`` is the name of the function that returns the part.

    Return False if toolkit cannot insert the statement, for example because a loop assigns the arrays.
    """
    scopes = {work.flow.bound_in(name) for name in names}
    if len(scopes) != 1 or None in scopes:
        return False
    (scope,) = scopes
    words = ", ".join(name.id for name in names)
    parts = ", ".join(f"{helper}({name.id})" for name in names)
    bound = [b.statement for name in names for b in work.flow.bindings(name)]
    if any(not _belongs(work, one, scope) for one in bound):
        return False
    if not bound and isinstance(scope, ast.FunctionDef):
        body = scope.body
        first = body[1] if ast.get_docstring(scope) is not None and len(body) > 1 else body[0]
        return not work.once(first) or work.before(
            first, [f"{words} = {parts}"], "each rank trains on its part of the data"
        )
    last = max(bound, key=lambda one: one.lineno)
    return not work.once(last) or work.after(
        last, [f"{words} = {parts}"], "each rank trains on its part of the data"
    )


def _belongs(work: Work, statement: ast.stmt, scope: ast.AST | None) -> bool:
    """Return whether a statement is directly in the body of ``scope``, or of a top-level ``if`` such as
    ``if __name__ == "__main__"``.
    """
    parent = work.source.parents[statement]
    main = (
        isinstance(parent, ast.If)
        and isinstance(parent.test, ast.Compare)
        and parent in work.source.tree.body
    )
    return parent is scope or main


def leaves_early(work: Work, loops: list[Loop]) -> None:
    """Add a note for the user for each ``break`` in a loop over epochs, because all ranks must leave the loop
    together.

    ``loops`` are the loops around a training step, innermost first. All loops except the innermost count as
    loops over epochs. If there is only one loop, it counts as a loop over epochs.
    """
    for loop in loops[1:] or loops[:1]:
        for node in ast.walk(loop):
            inner = next(
                (one for one in work.source.around(node) if isinstance(one, ast.For | ast.While)), None
            )
            if isinstance(node, ast.Break) and inner is loop and work.once(node):
                what = "all ranks have to leave the loop together"
                work.leave(node, f"`break`: {what}, so use a condition that is equal on all ranks")


def name_at(work: Work, node: ast.expr, place: ast.stmt) -> str:
    """Return the expression by which a line at ``place`` can refer to the value of ``node``, such as
    ``self.model``. Return an empty string if toolkit finds no such expression.

    For example, if ``node`` is a parameter and ``place`` is in the caller, return the name of the caller's
    variable.
    """
    root = node
    while isinstance(root, ast.Attribute) or (
        isinstance(root, ast.Subscript) and isinstance(root.slice, ast.Constant)
    ):
        root = root.value
    if not isinstance(root, ast.Name):
        return ""
    if root.id == "self":
        same = work.source.klass(node) is work.source.klass(place)
        return work.source.of_node(node) if same else ""
    function = work.flow.is_parameter(root)
    if function is not None and function is not work.source.function(place):
        calls = work.flow.calls_of(function)
        value = work.flow.argument_of(calls[0], function, root.id) if calls else None
        if value is None or value is root:
            return ""
        rest = work.source.of_node(node)[len(root.id) :]
        return inner + rest if (inner := name_at(work, value, place)) else ""
    scope = work.flow.bound_in(root)
    visible = scope is work.source.tree or scope is work.source.function(place)
    return work.source.of_node(node) if visible else ""
