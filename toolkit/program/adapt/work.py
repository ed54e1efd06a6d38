"""Shared parts of ``toolkit adapt``: the file, its changes, and the unchanged parts."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.program.adapt.edits import Edits, Unplaceable
from toolkit.program.adapt.flow import Flow
from toolkit.program.adapt.result import ScriptChange
from toolkit.program.adapt.source import ScriptSource, argument, keyword


@dataclass(slots=False)
class Work:
    """A file that is adapted; ``size`` and ``rank`` are Python for the number of ranks and the own number."""

    source: ScriptSource
    flow: Flow
    edits: Edits
    size: str
    rank: str
    changes: list[ScriptChange] = field(default_factory=list)
    left: list[ScriptChange] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    mirrored: str = ""
    """With a strategy of TensorFlow: the function that names a separate place for each rank."""
    averaged: set[ast.AST] = field(default_factory=set)
    """Optimizers that are changed already."""
    _scaled: set[ast.AST] = field(default_factory=set)

    @classmethod
    def of(cls, source: ScriptSource, size: str, rank: str) -> "Work":
        """Return the work on a file."""
        return cls(source, Flow(source), Edits(source), size, rank)

    @property
    def on_first_rank(self) -> str:
        """A Python expression that is true on rank 0."""
        return f"{self.rank} == 0"

    def did(self, node: ast.AST, what: str) -> None:
        """Note a change."""
        self._note(self.changes, node, what)

    def leave(self, node: ast.AST, what: str) -> None:
        """Record a line that adapt does not understand, or that the user must decide."""
        self._note(self.left, node, what)

    def _note(self, notes: list[ScriptChange], node: ast.AST, what: str) -> None:
        made = ScriptChange(line=getattr(node, "lineno", 1), what=what)
        if made not in notes:
            notes.append(made)

    def free_name(self, name: str) -> str:
        """Return a name that the file does not use."""
        used = {one.id for one in ast.walk(self.source.tree) if isinstance(one, ast.Name)}
        used |= set(self.source.names.meanings) | set(self.flow.functions) | set(self.flow.classes)
        while name in used:
            name += "_"
        return name

    def shown(self, node: ast.expr | ast.stmt) -> str:
        """Return the first line of a node, for messages."""
        lines = self.source.of_node(node).splitlines()
        text = " ".join(lines[0].split())
        return f"{text[:60]}…" if len(text) > 60 or len(lines) > 1 else text

    def name_of(self, module: str, line: str) -> str:
        """Return the name of a module in this file; ``line`` imports it if nothing does."""
        for name, meaning in self.source.names.meanings.items():
            if meaning == module:
                return name
        if line not in self.imports:
            self.imports.append(line)
        return line.split()[-1]

    def once(self, node: ast.AST) -> bool:
        """Return whether a node is met for the first time."""
        if node in self._scaled:
            return False
        self._scaled.add(node)
        return True

    def multiply(self, node: ast.expr) -> None:
        """Multiply a number by the number of ranks."""
        self._operate(node, f" * {self.size}")

    def divide(self, node: ast.expr) -> None:
        """Divide a whole number by the number of ranks."""
        self._operate(node, f" // {self.size}")

    def _operate(self, node: ast.expr, operation: str) -> None:
        if not self.once(node):
            return
        simple = isinstance(node, ast.Name | ast.Constant | ast.Attribute | ast.Call | ast.Subscript)
        self.edits.wrap(node, "" if simple else "(", f"{operation}" if simple else f"){operation}")

    def only_first(self, call: ast.Call, name: str, usual: str, other: str) -> None:
        """Give an argument its value only on rank 0, and ``other`` on the other ranks; ``usual`` if the
        argument is absent.
        """
        given = keyword(call, name)
        if given is None:
            self.edits.add_argument(call, f"{name}={usual} if {self.on_first_rank} else {other}")
        elif not (isinstance(given.value, ast.Constant) and str(given.value.value) == other):
            simple = not isinstance(given.value, ast.IfExp | ast.Lambda)
            self.edits.wrap(
                given.value,
                "" if simple else "(",
                f"{'' if simple else ')'} if {self.on_first_rank} else {other}",
            )

    def before(self, statement: ast.stmt, lines: Sequence[str], what: str, rank: int = 0) -> bool:
        """Insert lines before a statement, and note it."""
        return self._place_lines(statement, lines, what, rank, after=False)

    def after(self, statement: ast.stmt, lines: Sequence[str], what: str, rank: int = 0) -> bool:
        """Insert lines after a statement, and note it."""
        return self._place_lines(statement, lines, what, rank, after=True)

    def _place_lines(self, at: ast.stmt, lines: Sequence[str], what: str, rank: int, *, after: bool) -> bool:
        try:
            (self.edits.after if after else self.edits.before)(at, lines, rank)
        except Unplaceable:
            self.leave(at, f"`{lines[0]}` belongs here; the line has several statements")
            return False
        self.did(at, what)
        return True

    def rate(self, call: ast.Call, name: str, place: int, usual: str) -> bool:
        """Multiply the rate of an optimizer; an optimizer without a rate gets the usual rate."""
        value = argument(call, place, name, "lr", "learning_rate")
        if value is None and any(one.arg is None for one in call.keywords):
            self.leave(call, f"`{self.shown(call)}`: multiply the rate by {self.size}")
            return False
        if value is None:
            if not usual:
                return False
            self.edits.add_argument(call, f"{name}={usual} * {self.size}")
        else:
            self.multiply(value)
        self.did(call, f"multiplies the learning rate by {self.size}")
        return True
