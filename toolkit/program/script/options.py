"""Read the options of a program that uses ``argparse``, if toolkit can read all options from the program's
text.
"""

import argparse
import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from toolkit.program.script.names import Names

_PARSER = "argparse.ArgumentParser"
_TYPES: Mapping[str, Any] = {"int": int, "float": float, "str": str}
_TAKEN = ("action", "nargs", "const", "default", "type", "choices", "required", "dest", "metavar")
_GROUPS = {"add_argument_group", "add_mutually_exclusive_group"}
_PLAIN = {"set_defaults", "print_help", "print_usage", "format_help", "error", "parse_args"}
_ACTIONS = {
    "store", "store_const", "store_true", "store_false", "append", "append_const", "count", "version",
}  # fmt: skip


class _NotShown(Exception):
    """toolkit cannot read all options, with their properties, from the program's text."""


class _Refused(Exception):
    """``argparse`` rejects the arguments of a command."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Refused(message)

    def exit(self, *_: object) -> NoReturn:
        raise _NotShown


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """The ``add_argument`` calls of a program.

    Each entry of ``calls`` describes one call: the number of the option's group in ``groups``, the option
    words such as ``--epochs``, and the keyword arguments. Group numbers start at 1; 0 means no group.
    """

    calls: tuple[tuple[int, tuple[str, ...], tuple[tuple[str, Any], ...]], ...]
    groups: tuple[tuple[bool, bool], ...] = ()
    """For each group of options: whether its options exclude each other, and whether the user must give one
    of its options.
    """
    prefix: bool = True
    """Whether the user may abbreviate options."""

    def fault(self, words: Sequence[str]) -> str:
        """Return the error that ``argparse`` reports for the arguments ``words``. Return an empty string if
        ``argparse`` reports no error, or if toolkit cannot decide.
        """
        try:
            self._parser().parse_args(list(words))
        except _Refused as refused:
            return str(refused)
        except (_NotShown, argparse.ArgumentError, TypeError, ValueError, KeyError):
            return ""
        return ""

    def value(self, words: Sequence[str], name: str) -> str:
        """Return the value of an option in the arguments ``words``, such as ``a.csv`` for ``--data a.csv``.
        Return an empty string if ``words`` do not contain the value. ``name`` is the option's ``dest`` in
        ``argparse``.
        """
        try:
            found = getattr(self._parser().parse_args(list(words)), name, None)
        except (_Refused, _NotShown, argparse.ArgumentError, TypeError, ValueError, KeyError):
            return ""
        return found if isinstance(found, str) and found in {w.rpartition("=")[2] for w in words} else ""

    def _parser(self) -> argparse.ArgumentParser:
        parser = _Parser(allow_abbrev=self.prefix)
        groups: list[Any] = [parser]
        for exclusive, required in self.groups:
            made = parser.add_mutually_exclusive_group(required=required) if exclusive else parser
            groups.append(made)
        for group, words, named in self.calls:
            groups[group].add_argument(*words, **dict(named))
        return parser


def options_of(tree: ast.Module, names: Names) -> ProgramOptions | None:
    """Return the options of a program, or ``None`` if toolkit cannot read all options from the program's
    text.
    """
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and names.dotted_name(node.func) == _PARSER
    ]
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    if len(made) != 1 or any(keyword.arg not in {*_HARMLESS, "allow_abbrev"} for keyword in made[0].keywords):
        return None
    name = _assigned(made[0], parents)
    try:
        return _options(tree, made[0], name, parents) if name else None
    except _NotShown:
        return None


_HARMLESS = ("description", "prog", "usage", "epilog", "formatter_class", "add_help")


def _assigned(call: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> str:
    """Return the variable to which the program assigns the result of a call, or an empty string."""
    parent = parents.get(call)
    target = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else ""


def _options(
    tree: ast.Module, parser_call: ast.Call, name: str, parents: Mapping[ast.AST, ast.AST]
) -> ProgramOptions | None:
    places = {name: 0}
    calls, groups, parsed = [], [], False
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    for use in sorted(uses, key=lambda n: (n.lineno, n.col_offset)):
        if use.id not in places:
            continue
        if isinstance(use.ctx, ast.Store):
            if use.id == name and parents[use] is not parents[parser_call]:
                raise _NotShown
            continue
        call = _called(use, parents)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method == "add_argument":
            calls.append((places[use.id], *_argument(call)))
        elif method in _GROUPS and (group := _assigned(call, parents)) and group not in places:
            required = any(k.arg == "required" and _constant(k.value) is True for k in call.keywords)
            groups.append((method == "add_mutually_exclusive_group", required))
            places[group] = len(groups)
        elif method == "parse_args" and not call.args and not call.keywords:
            parsed = True
        elif method not in _PLAIN or method == "parse_args":
            raise _NotShown
    prefix = all(_constant(k.value) is True for k in parser_call.keywords if k.arg == "allow_abbrev")
    return ProgramOptions(tuple(calls), tuple(groups), prefix) if parsed else None


def _called(use: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> ast.Call:
    """Return the method call, such as ``parser.add_argument(…)``, in which a program uses a variable.

    ``use`` is the place where the program uses the variable. ``parents`` maps each syntax node to its parent.

    Raises:
        _NotShown: if the program does not call a method of the variable, or may skip or repeat the call. A
            program may skip or repeat calls in loops, branches, ``try`` statements, classes and lambdas.
    """
    member = parents.get(use)
    call = parents.get(member) if isinstance(member, ast.Attribute) else None
    if not isinstance(call, ast.Call) or call.func is not member:
        raise _NotShown
    for outer in _around(call, parents):
        if isinstance(outer, ast.For | ast.While | ast.Try | ast.ClassDef | ast.Lambda | ast.comprehension):
            raise _NotShown
        if isinstance(outer, ast.If) and not (
            isinstance(outer.test, ast.Compare) and "__name__" in ast.unparse(outer.test)
        ):
            raise _NotShown
    return call


def _around(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


def _argument(call: ast.Call) -> tuple[tuple[str, ...], tuple[tuple[str, Any], ...]]:
    """Return the option words and the keyword arguments of one ``add_argument`` call.

    Raises:
        _NotShown: if a value is not a literal, or the action is unknown.
    """
    words = tuple(_constant(one) for one in call.args)
    if not words or not all(isinstance(word, str) for word in words):
        raise _NotShown
    named = {}
    for keyword in call.keywords:
        if keyword.arg in {"help", "metavar"}:
            continue
        if keyword.arg not in _TAKEN:
            raise _NotShown
        if keyword.arg == "type":
            if isinstance(keyword.value, ast.Name) and keyword.value.id in _TYPES:
                named["type"] = _TYPES[keyword.value.id]
            continue  # toolkit accepts all values of other types
        if keyword.arg == "default":
            named["default"] = None
            continue
        named[keyword.arg] = _constant(keyword.value)
    if named.get("action", "store") not in _ACTIONS or (named.get("action") == "version"):
        raise _NotShown
    return words, tuple(named.items())


def _constant(node: ast.expr) -> Any:  # noqa: ANN401
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        raise _NotShown from None
