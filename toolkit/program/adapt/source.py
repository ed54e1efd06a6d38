"""A Python file as text and as a syntax tree, with the text offsets and the parents of each syntax node."""

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from toolkit.program.script.names import Names, names_of

_LINE = re.compile(r"\r\n|\r|\n")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)


@dataclass(slots=False)
class ScriptSource:
    """A parsed Python file; offsets are character positions in ``text``."""

    text: str
    tree: ast.Module
    names: Names
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> "ScriptSource":
        """Parse the text of a Python file.

        Raises:
            SyntaxError: if the text is not valid Python.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
        found = cls(text, tree, names_of(tree))
        for node in ast.walk(tree):
            found.parents.update((child, node) for child in ast.iter_child_nodes(node))
        return found

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line's start. As in Python, a form feed does not start a line."""
        return [0, *(match.end() for match in _LINE.finditer(self.text))]

    @cached_property
    def newline(self) -> str:
        """The line ending of the first line, which is usually the line ending of the whole file."""
        found = _LINE.search(self.text)
        return found[0] if found else "\n"

    @cached_property
    def unit(self) -> str:
        """The white space of one indentation level in this file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.If | ast.For | ast.With | ast.FunctionDef | ast.ClassDef):
                outer, inner = self.indent(node), self.indent(node.body[0])
                if inner != outer and inner.startswith(outer):
                    return inner[len(outer) :]
        return "    "

    @cached_property
    def inside_strings(self) -> frozenset[int]:
        """The numbers of the lines that start inside a multi-line string. toolkit must not indent these
        lines, because their leading white space is part of the string.
        """
        lines: set[int] = set()
        begun: list[int] = []
        for token in tokenize.generate_tokens(io.StringIO(self.text, newline="").readline):
            name = tokenize.tok_name[token.type]
            if name == "STRING":
                lines.update(range(token.start[0] + 1, token.end[0] + 1))
            elif name.endswith("STRING_START"):
                begun.append(token.start[0])
            elif name.endswith("STRING_END"):
                lines.update(range(begun.pop() + 1, token.end[0] + 1))
        return frozenset(lines)

    def offset(self, line: int, column: int) -> int:
        """Convert a line and a column of ``ast`` to an offset in characters. The columns of ``ast`` count
        UTF-8 bytes.
        """
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return start + len(self.text[start:end].encode()[:column].decode())

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return the offset at which a syntax node starts. A function starts with its decorators."""
        first: ast.expr | ast.stmt | ast.keyword = node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.decorator_list:
            first = node.decorator_list[0]
            return self.text.rindex("@", 0, self.offset(first.lineno, first.col_offset))
        return self.offset(first.lineno, first.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return the offset in the text at which a syntax node ends."""
        return self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def of_node(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """Return the source text of a syntax node."""
        return self.text[self.start(node) : self.end(node)]

    def line_start(self, offset: int) -> int:
        """Return the offset of the start of the line that contains ``offset``."""
        return self.starts[bisect_right(self.starts, offset) - 1]

    def indent(self, node: ast.stmt) -> str:
        """Return the white space before a statement on its line."""
        start = self.line_start(self.start(node))
        return re.match(r"[ \t\f]*", self.text[start:])[0]  # type: ignore[index]

    def stands_alone(self, node: ast.stmt) -> bool:
        """Return whether a statement's lines contain no other statement. A comment is allowed."""
        before = self.text[self.line_start(self.start(node)) : self.start(node)]
        rest = _LINE.split(self.text[self.end(node) :], 1)[0]
        return not before.strip() and (not rest.strip() or rest.lstrip().startswith("#"))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the syntax nodes that contain a syntax node, innermost first."""
        while (node := self.parents.get(node)) is not None:  # type: ignore[assignment]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the syntax node if it is a statement, otherwise the statement that contains the node."""
        if isinstance(node, ast.stmt):
            return node
        return next(one for one in self.around(node) if isinstance(one, ast.stmt))

    def scope(self, node: ast.AST) -> Scope:
        """Return the innermost function, class or module that contains a syntax node."""
        return next((one for one in self.around(node) if isinstance(one, _SCOPES)), self.tree)

    def function(self, node: ast.AST) -> Function | None:
        """Return the innermost function that contains a syntax node, or ``None``."""
        return next(
            (o for o in self.around(node) if isinstance(o, ast.FunctionDef | ast.AsyncFunctionDef)), None
        )

    def klass(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the innermost class that contains a syntax node, or ``None``."""
        return next((one for one in self.around(node) if isinstance(one, ast.ClassDef)), None)

    def block(self, node: ast.stmt) -> list[ast.stmt]:
        """Return the list of statements that contains a statement."""
        for _, value in ast.iter_fields(self.parents[node]):
            if isinstance(value, list) and node in value:
                return value
        return [node]

    def dotted_name(self, node: ast.AST) -> str:
        """Return the full dotted name of an expression, with ``keras`` for ``tf.keras`` and ``tf_keras``.
        Return an empty string for an expression that is not a name.
        """
        name = self.names.dotted_name(node)
        for prefix in ("tensorflow.keras.", "tensorflow.python.keras.", "tf_keras.", "keras.api."):
            if name.startswith(prefix):
                return "keras." + name.removeprefix(prefix)
        return name

    def calls(self, node: ast.AST | None = None) -> Iterator[ast.Call]:
        """Yield the function calls in the file, or inside one syntax node, in the order of the text."""
        found = [one for one in ast.walk(node or self.tree) if isinstance(one, ast.Call)]
        yield from sorted(found, key=lambda one: (one.lineno, one.col_offset))


def method(call: ast.Call) -> str:
    """Return the last part of the dotted name that a call uses, such as ``fit`` for ``model.fit()``. For a
    call without a dotted name, such as ``print()``, return an empty string.
    """
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """Return the keyword argument ``name`` of a call, or ``None``."""
    return next((one for one in call.keywords if one.arg == name), None)


def argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """Return the value of a call's argument, or ``None`` if the call does not pass the argument.

    ``names`` are the possible keywords of the argument, and ``place`` is the argument's position, from 0.
    """
    for name in names:
        if (found := keyword(call, name)) is not None:
            return found.value
    if place < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args[: place + 1]):
        return call.args[place]
    return None
