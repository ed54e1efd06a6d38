"""Evaluate a module's expressions for paths and other strings, such as calls of ``os.path`` functions."""

import ast
import os.path
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from toolkit.program.script.names import Names

_SAME = {
    "str", "os.fspath", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "os.path.abspath",
    "os.path.realpath", "torch.device",
}  # fmt: skip
"""toolkit assumes that each of these functions, called with one argument, returns this argument."""
_FOLDER = {"os.getcwd", "pathlib.Path.cwd", "os.path.curdir"}
_METHODS = {"resolve", "absolute", "as_posix", "__str__"}
_CHANGES = {"sys.path.append", "sys.path.insert", "sys.path.extend", "site.addsitedir"}
_DEEPEST = 20


class Paths:
    """An evaluator for the paths in one module. Relative paths are relative to the job's folder."""

    def __init__(self, tree: ast.Module, names: Names, file: str) -> None:
        """``file`` is the value of ``__file__``."""
        self._tree = tree
        self._names = names
        self._file = file
        self._assigned = dict(_once_assigned(tree))

    def elsewhere(self) -> "Paths":
        """Return an evaluator that assumes that the module is in another folder.

        An expression depends on ``__file__`` if this evaluator and the original evaluator return different
        results for the expression.
        """
        return Paths(self._tree, self._names, "/else/where.py")

    def path(self, node: ast.AST, depth: int = 0) -> str | None:
        """Return the path that an expression evaluates to, or ``None`` if toolkit cannot evaluate it."""
        if depth > _DEEPEST:
            return None

        def below(operand: ast.AST) -> str | None:
            return self.path(operand, depth + 1)

        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            if node.id == "__file__":
                return self._file
            return below(self._assigned[node.id]) if node.id in self._assigned else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
            return _joined(below(node.left), below(node.right), slash=isinstance(node.op, ast.Div))
        if isinstance(node, ast.JoinedStr):
            return _together([below(one) for one in node.values])
        if isinstance(node, ast.FormattedValue):
            return below(node.value) if node.conversion == -1 and node.format_spec is None else None
        if isinstance(node, ast.Attribute | ast.Subscript):
            return self._member(node, below)
        return self._call(node, below) if isinstance(node, ast.Call) else None

    def _member(
        self, node: ast.Attribute | ast.Subscript, evaluate: Callable[[ast.AST], str | None]
    ) -> str | None:
        """Evaluate ``os.pardir``, ``X.parent`` or ``X.parents[N]``."""
        name = self._names.dotted_name(node)
        if name in {"os.pardir", "os.path.pardir"}:
            return ".."
        if name in {"os.curdir", "os.path.curdir"}:
            return "."
        if isinstance(node, ast.Attribute):
            return _parent(evaluate(node.value), 1) if node.attr == "parent" else None
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        value = node.value
        if (
            isinstance(place, int)
            and place >= 0
            and isinstance(value, ast.Attribute)
            and value.attr == "parents"
        ):
            return _parent(evaluate(value.value), place + 1)
        return None

    def _call(self, node: ast.Call, evaluate: Callable[[ast.AST], str | None]) -> str | None:
        name = self._names.dotted_name(node.func)
        given = [evaluate(one) for one in node.args]
        if name in _FOLDER:
            return "."
        if name in _SAME and len(given) == 1:
            return given[0]
        if name == "os.path.normpath" and len(given) == 1 and given[0] is not None:
            return posixpath.normpath(given[0])
        if name == "os.path.dirname" and len(given) == 1 and given[0] is not None:
            return posixpath.dirname(given[0]) or "."
        if (name == "os.path.join" or name in _SAME) and given and None not in given:
            return posixpath.join(*(one for one in given if one is not None))
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not node.args:
            return evaluate(node.func.value)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "joinpath" and None not in given:
            start = evaluate(node.func.value)
            return (
                None if start is None else posixpath.join(start, *(one for one in given if one is not None))
            )
        return None


def search_path(tree: ast.Module, names: Names, paths: Paths) -> Iterator[tuple[int, str | None]]:
    """Yield a line number and a folder for each folder that a module adds to ``sys.path``. The folder is
    ``None`` if toolkit cannot evaluate its path.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := names.dotted_name(node.func)) in _CHANGES:
            value = node.args[-1] if node.args else None
            many = name == "sys.path.extend"
            yield from ((node.lineno, one) for one in _folders(value, paths, several_values=many))
        elif isinstance(node, ast.AugAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(names.dotted_name(_whole(target)) == "sys.path" for target in targets):
                yield from ((node.lineno, one) for one in _folders(node.value, paths, several_values=True))


def _whole(target: ast.AST) -> ast.AST:
    """Return an assignment's target without its subscript: ``sys.path`` for ``sys.path[0:0]``."""
    return target.value if isinstance(target, ast.Subscript) else target


def _folders(value: ast.AST | None, paths: Paths, *, several_values: bool) -> Iterator[str | None]:
    if several_values and isinstance(value, ast.List | ast.Tuple):
        yield from (paths.path(one) for one in value.elts)
    elif several_values and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        sides = [side for side in (value.left, value.right) if not _is_path(side)]
        for side in sides:
            yield from _folders(side, paths, several_values=True)
    else:
        yield paths.path(value) if value is not None and not several_values else None


def _is_path(node: ast.AST) -> bool:
    whole = _whole(node)
    return isinstance(whole, ast.Attribute) and ast.unparse(whole) == "sys.path"


def _once_assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name to which a module assigns exactly once, with the assigned expression."""
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    bound = Counter(node.id for node in names)
    bound.update(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and bound[target.id] == 1:
            yield target.id, node.value


def _joined(left: str | None, right: str | None, *, slash: bool) -> str | None:
    if left is None or right is None:
        return None
    return posixpath.join(left, right) if slash else left + right


def _together(parts: list[str | None]) -> str | None:
    return None if None in parts else "".join(part for part in parts if part is not None)


def _parent(path: str | None, count: int) -> str | None:
    if path is None:
        return None
    normal = PurePosixPath(posixpath.normpath(path))
    parents = normal.parents
    return str(parents[min(count, len(parents)) - 1]) if len(parents) else posixpath.join(path, "..")


def absolute(path: str, start: Path) -> Path:
    """Return ``path`` as an absolute path without ``..``. A relative path is relative to ``start``, the
    folder in which the program starts.
    """
    return Path(os.path.normpath(start / path))
