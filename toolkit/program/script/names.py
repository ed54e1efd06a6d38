"""Use the imports of a module to resolve its names to full dotted names."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

_LOADERS = {"importlib.import_module", "__import__"}


@dataclass(slots=True)
class Names:
    """The full dotted names to which the names in one module refer.

    ``meanings`` maps a name such as ``hvd`` to ``horovod.tensorflow``. ``stars`` lists the modules from which
    this module imports ``*``.
    """

    meanings: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    def dotted_name(self, node: ast.AST) -> str:
        """Return the full dotted name of an expression such as ``hvd.init``, or an empty string if the
        expression is not a name with optional attributes.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.meanings.get(node.id, node.id), *reversed(parts)])

    def readings(self, node: ast.AST) -> Iterator[str]:
        """Yield the full dotted names that an expression may have.

        The first result is the name from :meth:`dotted_name`. If the module does not import this name, one of
        the ``*`` imports may define the name. So each further result has a module of ``stars`` before the
        name, as in ``torch.Tensor``.
        """
        if name := self.dotted_name(node):
            yield name
            if isinstance(node, ast.Name) and node.id not in self.meanings:
                yield from (f"{star}.{name}" for star in self.stars)


def names_of(tree: ast.Module) -> Names:
    """Return the full dotted name of each name that a module imports, or assigns from an imported name."""
    found = Names()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                found.meanings[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            _add_from(found, node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            _add_assigned(found, target.id, node.value)
    return found


def imported_module(call: ast.Call, names: Names) -> str | None:
    """Return the name of the module that a call of ``importlib.import_module`` or ``__import__`` imports.

    Return an empty string if the program computes the module's name. Return ``None`` for a call of any other
    function.
    """
    if names.dotted_name(call.func) not in _LOADERS:
        return None
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    return ""


def _add_from(names: Names, node: ast.ImportFrom) -> None:
    for alias in node.names:
        if alias.name == "*":
            names.stars.append(node.module or "")
        else:
            names.meanings[alias.asname or alias.name] = f"{node.module}.{alias.name}"


def _add_assigned(names: Names, name: str, value: ast.expr) -> None:
    """Record assignments such as ``dist = torch.distributed`` or ``hvd = importlib.import_module(…)``."""
    if name in names.meanings:
        return
    if isinstance(value, ast.Call) and (module := imported_module(value, names)):
        names.meanings[name] = module
    elif isinstance(value, ast.Attribute) and (meaning := names.dotted_name(value)):
        packages = {known.partition(".")[0] for known in names.meanings.values()}
        if meaning.partition(".")[0] in packages:
            names.meanings[name] = meaning
