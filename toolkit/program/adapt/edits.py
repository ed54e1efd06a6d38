"""Change the text of a Python file by position; unchanged parts keep their layout and comments."""

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from toolkit.program.adapt.source import ScriptSource

_WIDEST = 100


class Unplaceable(Exception):
    """Raised if toolkit cannot insert a line, for example because two statements share a line."""


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str
    rank: int = 0
    """The order of insertions at the same offset: the insertion with the smallest number comes first."""


@dataclass(slots=True)
class Edits:
    """The changes to the text of one file."""

    source: ScriptSource
    _edits: list[_Edit] = field(default_factory=list)
    _guarded: list[ast.stmt] = field(default_factory=list)

    @property
    def places(self) -> list[int]:
        """The character offsets at which the text changes."""
        return [edit.start for edit in self._edits] + [self.source.start(one) for one in self._guarded]

    @property
    def texts(self) -> list[str]:
        """The texts that the edits insert."""
        return [edit.text for edit in self._edits]

    def insert(self, offset: int, text: str, rank: int = 0) -> None:
        """Insert a text at an offset. If callers insert several texts at one offset, the text with the
        smallest ``rank`` comes first.
        """
        self._edits.append(_Edit(offset, offset, text, rank))

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace the text between two offsets."""
        self._edits.append(_Edit(start, end, text))

    def wrap(self, node: ast.expr, prefix: str, suffix: str) -> None:
        """Insert texts before and after an expression.

        If callers wrap one expression several times, the texts of the last ``wrap`` are the outermost.
        """
        count = len(self._edits)
        self.insert(self.source.start(node), prefix, rank=1000 - count)
        self.insert(self.source.end(node), suffix, rank=-1000 + count)

    def add_argument(self, call: ast.Call, text: str) -> None:
        """Add an argument after the last argument of a call, in the layout of the call."""
        source = self.source
        last = max((source.end(one) for one in (*call.args, *(k.value for k in call.keywords))), default=None)
        if last is None:
            self.insert(source.end(call) - 1, text)
            return
        between = source.text[last : source.end(call) - 1]
        # A closing parenthesis, a comma, comments and line ends may follow the last argument.
        found = [one for one in re.finditer(r"#[^\r\n]*|[,)]", between) if not one[0].startswith("#")]
        at = last + (found[-1].end() if found else 0)
        comma = bool(found) and found[-1][0] == ","
        if "\n" in between and comma:
            line_end = at + len(re.match(r"[ \t]*(#[^\r\n]*)?", source.text[at:])[0])  # type: ignore[index]
            self.insert(line_end, f"{source.newline}{self._margin(last)}{text},", rank=5)
            return
        joint = "" if comma else ","
        self.insert(at, f"{joint}{self._space(call, at, text)}{text}", rank=5)

    def _margin(self, offset: int) -> str:
        return re.match(r"[ \t]*", self.source.text[self.source.line_start(offset) :])[0]  # type: ignore[index]

    def _space(self, call: ast.Call, offset: int, text: str) -> str:
        """Return the white space before a new argument: a line break if the line would be too long."""
        begin = self.source.line_start(offset)
        added = sum(
            len(one.text) for one in self._edits if begin <= one.start <= offset and "\n" not in one.text
        )
        if offset - begin + added + len(text) <= _WIDEST:
            return " "
        opening = self.source.end(call.func) + 1
        start = self.source.line_start(opening)
        column = opening - start
        if column > _WIDEST // 2 or "\t" in self.source.text[start:opening]:
            return f"{self.source.newline}{self._margin(opening)}{self.source.unit * 2}"
        return f"{self.source.newline}{' ' * column}"

    def before(self, statement: ast.stmt, lines: Sequence[str], rank: int = 0) -> None:
        """Insert lines before a statement, with the statement's indentation.

        Raises:
            Unplaceable: if the statement is not the first statement on its line, or is an ``elif``.
        """
        source = self.source
        start = source.start(statement)
        begin = source.line_start(start)
        if source.text[begin:start].strip() or source.text.startswith("elif", start):
            raise Unplaceable
        self.insert(begin, self._lines(lines, source.indent(statement)), rank)

    def after(self, statement: ast.stmt, lines: Sequence[str], rank: int = 0) -> None:
        """Insert lines after a statement, with the statement's indentation.

        Raises:
            Unplaceable: if the statement shares its line with another statement, or with the head of its
                block, such as ``if x:``.
        """
        source = self.source
        if source.text[source.line_start(source.start(statement)) : source.start(statement)].strip():
            raise Unplaceable
        end = source.end(statement)
        following = re.compile(r"[ \t]*(#[^\r\n]*)?(\r\n|\r|\n|\Z)").match(source.text, end)
        if following is None:
            raise Unplaceable
        text = self._lines(lines, source.indent(statement))
        if not following[2]:
            text = source.newline + text.removesuffix(source.newline)
        self.insert(following.end(), text, rank)

    def guard(self, statement: ast.stmt) -> None:
        """Mark a statement so that only rank 0 runs it. :meth:`apply` puts the statement into an ``if``.

        Raises:
            Unplaceable: if the statement shares its line with another statement, or is an ``elif``.
        """
        if not self.source.stands_alone(statement) or self.source.text.startswith(
            "elif", self.source.start(statement)
        ):
            raise Unplaceable
        if statement not in self._guarded:
            self._guarded.append(statement)

    def apply(self, test: str) -> str:
        """Return the changed text of the file; ``test`` is a Python expression that is true only on rank 0.

        Raises:
            ValueError: if two changes overlap.
        """
        for group in self._groups():
            self._put_under(group, f"if {test}:")
        text, parts, at = self.source.text, [], 0
        for edit in sorted(self._edits, key=lambda one: (one.start, one.end, one.rank)):
            if edit.start < at:
                raise ValueError(f"two changes overlap at {edit.start}")
            parts += [text[at : edit.start], edit.text]
            at = edit.end
        return "".join([*parts, text[at:]])

    def _groups(self) -> Iterable[list[ast.stmt]]:
        """Yield each group of consecutive marked statements (see :meth:`guard`) in one block."""
        inner = {one for one in self._guarded if any(up in self._guarded for up in self.source.around(one))}
        left = sorted((one for one in self._guarded if one not in inner), key=lambda one: one.lineno)
        group: list[ast.stmt] = []
        for one in left:
            if group and not self._follows(group[-1], one):
                yield group
                group = []
            group.append(one)
        if group:
            yield group

    def _follows(self, first: ast.stmt, second: ast.stmt) -> bool:
        block = self.source.block(first)
        following = block.index(first) + 1
        if any(self.source.end(first) < edit.start <= self.source.start(second) for edit in self._edits):
            return False
        return following < len(block) and block[following] is second

    def _put_under(self, group: list[ast.stmt], head: str) -> None:
        source = self.source
        first, last = group[0], group[-1]
        self.insert(
            source.line_start(source.start(first)), f"{source.indent(first)}{head}{source.newline}", rank=8
        )
        begin = (
            first.decorator_list[0].lineno
            if isinstance(first, ast.FunctionDef) and first.decorator_list
            else first.lineno
        )
        for line in range(begin, (last.end_lineno or last.lineno) + 1):
            start = source.starts[line - 1]
            blank = re.match(r"[ \t\f]*([\r\n]|\Z)", source.text[start:])
            if line not in source.inside_strings and not blank:
                self.insert(start, source.unit, rank=9)

    def _lines(self, lines: Sequence[str], indent: str) -> str:
        unit = self.source.unit
        made = []
        for line in lines:
            depth = len(line) - len(line.lstrip("\t"))
            made.append(f"{indent}{unit * depth}{line.lstrip(chr(9))}" if line else "")
        return "".join(f"{line}{self.source.newline}" for line in made)
