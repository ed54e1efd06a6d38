"""Trace values in a Python file through assignments, calls and attributes of ``self``."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from toolkit.program.adapt.source import Function, Scope, ScriptSource, argument

_DEEPEST = 12


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A statement that assigns a value to a name.

    ``value`` is the assigned expression, or ``None`` if the statement does not contain the value, as in a
    ``for`` loop. If the statement assigns a tuple to several names, ``path`` lists the indexes of the name's
    value: ``(1, 0)`` for ``b`` in ``a, (b, c) = value``.
    """

    statement: ast.stmt
    value: ast.expr | None
    path: tuple[int, ...] = ()


@dataclass(slots=False)
class Flow:
    """The possible values of the names in a Python file."""

    source: ScriptSource
    _busy: set[ast.AST] = field(default_factory=set)

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """All functions and methods of the file, by name."""
        found: dict[str, list[Function]] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes of the file, by name."""
        return {node.name: node for node in ast.walk(self.source.tree) if isinstance(node, ast.ClassDef)}

    @cached_property
    def _bindings(self) -> dict[tuple[Scope, str], list[Binding]]:
        found: dict[tuple[Scope, str], list[Binding]] = {}
        for node in ast.walk(self.source.tree):
            for name, binding in _bound(node):
                found.setdefault((self.source.scope(node), name), []).append(binding)
        return found

    @cached_property
    def _attributes(self) -> dict[tuple[ast.ClassDef, str], list[Binding]]:
        """The assignments to ``self.NAME``, by class and name."""
        found: dict[tuple[ast.ClassDef, str], list[Binding]] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and (klass := self.source.klass(node)):
                targets: list[ast.expr] = (
                    list(node.targets) if isinstance(node, ast.Assign) else [node.target]
                )
                for target, path in _flat(targets):
                    if is_self(target) and isinstance(target, ast.Attribute):
                        found.setdefault((klass, target.attr), []).append(Binding(node, node.value, path))
        return found

    def bound_in(self, name: ast.Name) -> Scope | None:
        """Return the function, class or module that binds a name, as a variable or as a parameter. Return
        ``None`` if the file does not bind the name.
        """
        for scope in self._scopes(name):
            if (scope, name.id) in self._bindings or _parameter(scope, name.id):
                return scope
        return None

    def bindings(self, node: ast.expr) -> list[Binding]:
        """Return the assignments to a name or to an attribute of ``self``; for any other expression, return
        an empty list.
        """
        if isinstance(node, ast.Name) and (scope := self.bound_in(node)):
            return self._bindings.get((scope, node.id), [])
        if isinstance(node, ast.Attribute) and is_self(node) and (klass := self.source.klass(node)):
            return self._attributes.get((klass, node.attr), [])
        return []

    def function_of(self, call: ast.Call) -> Function | None:
        """Return the function in the file that a call runs, or ``None``. If the call creates an instance of a
        class, return the ``__init__`` method of the class.
        """
        if isinstance(call.func, ast.Name):
            if klass := self.classes.get(call.func.id):
                return next(
                    (
                        one
                        for one in klass.body
                        if isinstance(one, ast.FunctionDef) and one.name == "__init__"
                    ),
                    None,
                )
            found = [f for f in self.functions.get(call.func.id, ()) if not self.is_method(f)]
            return found[-1] if found else None
        if isinstance(call.func, ast.Attribute):
            return self._method(call.func)
        return None

    def _method(self, node: ast.Attribute) -> Function | None:
        """Return the method in the file that an expression such as ``trainer.fit`` names.

        Return ``None`` if the file has no such method, or toolkit cannot decide between several methods.
        """
        found = [f for f in self.functions.get(node.attr, ()) if self.is_method(f)]
        root = self.source.dotted_name(node).partition(".")[0]
        own = self.source.klass(node)
        if not found or root in {
            meaning.partition(".")[0] for meaning in self.source.names.meanings.values()
        }:
            return None
        if is_self(node):
            return next((f for f in found if self.source.parents[f] is own), None)
        made = [b.value for b in self.bindings(node.value) if isinstance(b.value, ast.Call)]
        classes = [self.classes.get(one.func.id) for one in made if isinstance(one.func, ast.Name)]
        if made:
            return next((f for f in found if self.source.parents[f] in classes), None)
        # In ``self.x.fit()``, ``self.x`` is rarely of the class of ``self``: skip the methods of this class.
        inside = isinstance(node.value, ast.Attribute) and is_self(node.value)
        others = [f for f in found if not inside or self.source.parents[f] is not own]
        return others[0] if len(others) == 1 else None

    def is_method(self, function: Function) -> bool:
        """Return whether a function is a method of a class."""
        return isinstance(self.source.parents[function], ast.ClassDef)

    @cached_property
    def _calls_of(self) -> dict[Function, list[ast.Call]]:
        found: dict[Function, list[ast.Call]] = {}
        for call in self.source.calls():
            if function := self.function_of(call):
                found.setdefault(function, []).append(call)
        return found

    def calls_of(self, function: Function) -> list[ast.Call]:
        """Return all calls of a function in this file."""
        return self._calls_of.get(function, [])

    def argument_of(self, call: ast.Call, function: Function, name: str) -> ast.expr | None:
        """Return the expression that a call passes for the parameter ``name`` of a function. Return ``None``
        if the call does not pass the parameter.
        """
        parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        if self.is_method(function) and parameters[:1] == ["self"]:
            parameters = parameters[1:]
        place = parameters.index(name) if name in parameters else len(call.args) + 1
        return argument(call, place, name)

    def sources(self, node: ast.expr, path: tuple[int, ...] = (), depth: int = 0) -> list[ast.expr]:
        """Return the expressions from which ``node`` may get its value, such as ``a`` and ``b`` for the name
        ``x`` after ``x = a if test else b``.

        If toolkit cannot trace the value of an expression further, the result contains this expression. If
        the value of ``node`` is a tuple, ``path`` selects an element: ``(1, 0)`` selects ``node[1][0]``.
        """
        if depth > _DEEPEST or node in self._busy:
            return [node]
        self._busy.add(node)
        try:
            found = list(self._steps(node, path))
            if not found:
                return [node]
            return list(dict.fromkeys(s for one, rest in found for s in self.sources(one, rest, depth + 1)))
        finally:
            self._busy.discard(node)

    def _steps(self, node: ast.expr, path: tuple[int, ...]) -> Iterator[tuple[ast.expr, tuple[int, ...]]]:
        if path and isinstance(node, ast.Tuple | ast.List) and path[0] < len(node.elts):
            yield node.elts[path[0]], path[1:]
        elif isinstance(node, ast.Name | ast.Attribute):
            for binding in self.bindings(node):
                if binding.value is not None:
                    yield binding.value, (*binding.path, *path)
            if isinstance(node, ast.Name):
                yield from ((one, path) for one in self._arguments(node))
        elif isinstance(node, ast.Call):
            yield from ((one, path) for one in self._returned_values(node))
        elif isinstance(node, ast.IfExp):
            yield from ((node.body, path), (node.orelse, path))
        elif isinstance(node, ast.Subscript) and not path:
            yield from self._element(node)

    def _returned_values(self, call: ast.Call) -> Iterator[ast.expr]:
        function = self.function_of(call)
        if function is not None and function.name != "__init__":
            for one in ast.walk(function):
                if isinstance(one, ast.Return) and one.value and self.source.function(one) is function:
                    yield one.value

    def _element(self, node: ast.Subscript) -> Iterator[tuple[ast.expr, tuple[int, ...]]]:
        """Yield the values that an expression such as ``models[key]`` may read from the dictionary
        ``models``.
        """
        for value in self.sources(node.value):
            if isinstance(value, ast.Dict):
                key = node.slice.value if isinstance(node.slice, ast.Constant) else None
                pairs = [
                    (k.value if isinstance(k, ast.Constant) else None, v)
                    for k, v in zip(value.keys, value.values, strict=True)
                ]
                named = [v for k, v in pairs if key is not None and k == key]
                yield from ((one, ()) for one in named or [v for _, v in pairs])
            elif isinstance(value, ast.DictComp):
                yield value.value, ()

    def _arguments(self, name: ast.Name) -> Iterator[ast.expr]:
        scope = self.bound_in(name)
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and _parameter(scope, name.id):
            for call in self.calls_of(scope):
                if (value := self.argument_of(call, scope, name.id)) is not None:
                    yield value

    def is_parameter(self, name: ast.expr) -> Function | None:
        """Return the function with the parameter ``name``, or ``None`` if ``name`` is not a parameter."""
        if not isinstance(name, ast.Name):
            return None
        scope = self.bound_in(name)
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and _parameter(scope, name.id):
            return scope
        return None

    def _scopes(self, node: ast.AST) -> Iterator[Scope]:
        inner = self.source.scope(node)
        yield inner
        while inner is not self.source.tree:
            inner = self.source.scope(inner)
            if not isinstance(inner, ast.ClassDef):
                yield inner

    def reaches(self, code: ast.AST, targets: "set[ast.AST] | frozenset[ast.AST]", depth: int = 0) -> bool:
        """Return whether ``code`` contains one of the syntax nodes in ``targets``, or calls a function that
        contains one of these nodes, directly or through other functions.
        """
        if any(node in targets for node in ast.walk(code)):
            return True
        if depth > _DEEPEST:
            return False
        functions = {f for call in self.source.calls(code) if (f := self.function_of(call))}
        return any(
            function not in self.source.around(code) and self.reaches(function, targets, depth + 1)
            for function in functions
        )


def is_self(node: ast.expr) -> bool:
    """Return whether a syntax node is an attribute of ``self``, such as ``self.model``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _parameter(scope: Scope, name: str) -> bool:
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return False
    arguments = scope.args
    return name in {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _flat(targets: list[ast.expr], path: tuple[int, ...] = ()) -> Iterator[tuple[ast.expr, tuple[int, ...]]]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            for place, one in enumerate(target.elts):
                yield from _flat([one], (*path, place))
        else:
            yield target, path


def _bound(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    if isinstance(node, ast.Assign):
        found = ((one, path) for one, path in _flat(node.targets) if isinstance(one, ast.Name))
        yield from ((one.id, Binding(node, node.value, path)) for one, path in found)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, Binding(node, node.value)
    elif isinstance(node, ast.For | ast.AsyncFor):
        names = (one for one, _ in _flat([node.target]) if isinstance(one, ast.Name))
        yield from ((one.id, Binding(node, None)) for one in names)
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            if isinstance(item.optional_vars, ast.Name):
                yield item.optional_vars.id, Binding(node, item.context_expr)
