"""The state that all parts of ``toolkit adapt`` share: the script, the changes to the script, and the lines
that the user must check.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.program.adapt.edits import Edits, Unplaceable
from toolkit.program.adapt.flow import Flow
from toolkit.program.adapt.result import ScriptChange
from toolkit.program.adapt.source import ScriptSource, argument, keyword


@dataclass(slots=False)
class Work:
    """The script that toolkit adapts.

    ``size`` and ``rank`` are Python expressions in the changed script. ``size``, such as ``hvd.size()``, is
    the number of ranks. ``rank``, such as ``hvd.rank()``, is the index of the rank that evaluates the
    expression. ``changes`` lists the lines that toolkit changed, and ``user_notes`` the lines that the user
    must check. ``imports`` and ``helpers`` are lines that toolkit adds to the script: import statements and
    helper functions.
    """

    source: ScriptSource
    flow: Flow
    edits: Edits
    size: str
    rank: str
    changes: list[ScriptChange] = field(default_factory=list)
    user_notes: list[ScriptChange] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    path_helper: str = ""
    """For a TensorFlow strategy, the name of a helper function that returns a separate path for each rank.
    Without a TensorFlow strategy, an empty string.
    """
    changed_nodes: set[ast.AST] = field(default_factory=set)
    """Optimizers and data loaders that toolkit has already changed."""
    _scaled: set[ast.AST] = field(default_factory=set)

    @classmethod
    def of(cls, source: ScriptSource, size: str, rank: str) -> "Work":
        """Return the state for a file that toolkit has not changed yet."""
        return cls(source, Flow(source), Edits(source), size, rank)

    @property
    def on_first_rank(self) -> str:
        """A Python expression that is true on rank 0."""
        return f"{self.rank} == 0"

    def did(self, node: ast.AST, description: str) -> None:
        """Record a change of the line at ``node``, with a ``description`` of the change."""
        self._note(self.changes, node, description)

    def leave(self, node: ast.AST, description: str) -> None:
        """Record that the user must check the line at ``node``; ``description`` says why, or what to do."""
        self._note(self.user_notes, node, description)

    def _note(self, notes: list[ScriptChange], node: ast.AST, description: str) -> None:
        made = ScriptChange(line=getattr(node, "lineno", 1), what=description)
        if made not in notes:
            notes.append(made)

    def free_name(self, name: str) -> str:
        """Return a name that the script does not use: ``name``, or ``name`` followed by underscores."""
        used = {one.id for one in ast.walk(self.source.tree) if isinstance(one, ast.Name)}
        used |= set(self.source.names.meanings) | set(self.flow.functions) | set(self.flow.classes)
        while name in used:
            name += "_"
        return name

    def shown(self, node: ast.expr | ast.stmt) -> str:
        """Return at most 60 characters of the first line of a syntax node's text, for messages."""
        lines = self.source.of_node(node).splitlines()
        text = " ".join(lines[0].split())
        return f"{text[:60]}…" if len(text) > 60 or len(lines) > 1 else text

    def name_of(self, module: str, line: str) -> str:
        """Return the name by which the script refers to a module. If the script does not import the module,
        add the import statement ``line`` to the changed script.
        """
        for name, meaning in self.source.names.meanings.items():
            if meaning == module:
                return name
        if line not in self.imports:
            self.imports.append(line)
        return line.split()[-1]

    def once(self, node: ast.AST) -> bool:
        """Return True at the first call for a syntax node, and False at each later call, so that toolkit
        changes the syntax node once.
        """
        if node in self._scaled:
            return False
        self._scaled.add(node)
        return True

    def multiply(self, node: ast.expr) -> None:
        """Change the script so that it multiplies a number by the number of ranks."""
        self._operate(node, f" * {self.size}")

    def divide(self, node: ast.expr) -> None:
        """Change the script so that it divides a whole number by the number of ranks."""
        self._operate(node, f" // {self.size}")

    def _operate(self, node: ast.expr, operation: str) -> None:
        if not self.once(node):
            return
        simple = isinstance(node, ast.Name | ast.Constant | ast.Attribute | ast.Call | ast.Subscript)
        self.edits.wrap(node, "" if simple else "(", f"{operation}" if simple else f"){operation}")

    def only_first(self, call: ast.Call, name: str, default: str, other_value: str) -> None:
        """Change the argument ``name`` of a call, so that rank 0 passes the value of the original script, and
        all other ranks pass ``other_value``.

        If the call in the original script does not pass the argument, rank 0 passes ``default``.
        """
        given = keyword(call, name)
        if given is None:
            self.edits.add_argument(call, f"{name}={default} if {self.on_first_rank} else {other_value}")
        elif not (isinstance(given.value, ast.Constant) and str(given.value.value) == other_value):
            simple = not isinstance(given.value, ast.IfExp | ast.Lambda)
            self.edits.wrap(
                given.value,
                "" if simple else "(",
                f"{'' if simple else ')'} if {self.on_first_rank} else {other_value}",
            )

    def before(self, statement: ast.stmt, lines: Sequence[str], description: str, rank: int = 0) -> bool:
        """Insert lines before a statement, record the change with its ``description``, and return True. If
        toolkit cannot insert the lines, add a note for the user and return False.

        ``rank`` is an order number, not an MPI rank: if several changes insert lines at one position, the
        lines with the smallest ``rank`` come first.
        """
        return self._place_lines(statement, lines, description, rank, after=False)

    def after(self, statement: ast.stmt, lines: Sequence[str], description: str, rank: int = 0) -> bool:
        """Insert lines after a statement, as :meth:`before` inserts lines before a statement."""
        return self._place_lines(statement, lines, description, rank, after=True)

    def _place_lines(
        self, statement: ast.stmt, lines: Sequence[str], description: str, rank: int, *, after: bool
    ) -> bool:
        try:
            (self.edits.after if after else self.edits.before)(statement, lines, rank)
        except Unplaceable:
            where = f"{'after' if after else 'before'} `{self.shown(statement)}`"
            self.leave(statement, f"several statements share this line: insert `{lines[0]}` yourself {where}")
            return False
        self.did(statement, description)
        return True

    def rate(self, call: ast.Call, name: str, place: int, default_rate: str) -> bool:
        """Multiply the learning rate of an optimizer by the number of ranks. Return whether toolkit changed
        the learning rate.

        ``name`` and ``place`` are the keyword and the position of the argument for the learning rate.
        ``default_rate`` is empty if the optimizer has no default rate.
        """
        value = argument(call, place, name, "lr", "learning_rate")
        if value is None and any(one.arg is None for one in call.keywords):
            self.leave(call, f"`{self.shown(call)}`: multiply the learning rate by `{self.size}`")
            return False
        if value is None:
            if not default_rate:
                return False
            self.edits.add_argument(call, f"{name}={default_rate} * {self.size}")
        else:
            self.multiply(value)
        self.did(call, f"multiplies the learning rate by `{self.size}`")
        return True
