"""Compute the values of each task of a sweep.

An item ``NAME=VALUES`` lists the values of one parameter. A sweep has one task for each combination of
values.
"""

import itertools
import math
import re
from collections.abc import Iterable, Sequence

from toolkit.errors import BadInput
from toolkit.model.job import MOST_TASKS
from toolkit.render import quote_word

FILE = "sweep.sh"
"""A shell file that sets variables to the parameter values of an array task.

The job script writes this file into the folder of the task.
"""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_VALUE = re.compile(r'"((?:[^"]|"")*)"(?=,|$)|([^,]*)')
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(\d{1,9}))?")
_FRACTIONS = re.compile(r"-?[\d.]*\d\.\.\.?-?\d[\d.]*")
_SHAPE = "write NAME=VALUE,VALUE or NAME=FIRST..LAST, as in lr=0.1,0.01 or seed=1..5"

Row = dict[str, str]
"""The values of one task, by parameter name."""


def fault(item: str) -> str:
    """Return the fault of an item ``NAME=VALUES``, or an empty string."""
    name, equals, text = item.partition("=")
    if not equals or not _NAME.fullmatch(name):
        return _SHAPE
    if not text.isprintable():
        return "a value has a line break or a control character"
    for quote, plain in _pieces(text):
        if not quote and not plain:
            return 'a value is empty; write "" for an empty text'
        if not quote and (what := _fault_of_range(plain)):
            return what
    values = _values(text)
    if twice := next((value for value in values if values.count(value) > 1), None):
        return f"the value {twice} appears twice"
    return ""


def rows(sweep: Iterable[str]) -> list[Row]:
    """Return the values of each task in task order; the values of the last parameter vary fastest.

    The result is empty for a job without a sweep.

    >>> rows(["lr=0.1,0.01", "seed=1..2"])[1]
    {'lr': '0.1', 'seed': '2'}
    """
    axes = [(name, _values(text)) for name, _, text in (item.partition("=") for item in sweep)]
    names, values = [name for name, _ in axes], [v for _, v in axes]
    tasks = itertools.product(*values) if values else ()
    return [dict(zip(names, row, strict=True)) for row in tasks]


def array(sweep: Sequence[str], parallel_tasks: int | None) -> str:
    """Return the task numbers of a sweep as a value of ``--array``.

    At most ``parallel_tasks`` tasks run at once. ``None`` means no limit.

    Raises:
        BadInput: if two parameters need the same variable, or the sweep has too many tasks.
    """
    names = names_of(sweep)
    variables = [variable(name) for name in names]
    for at, variable_name in enumerate(variables):
        if variable_name in variables[:at]:
            raise BadInput(
                f"--sweep {names[at]}: {names[variables.index(variable_name)]} also sets the variable "
                f"{variable_name}",
                fix="rename one of the parameters",
            )
    count = math.prod(len(_values(item.partition("=")[2])) for item in sweep)
    if count > MOST_TASKS:
        raise BadInput(
            f"--sweep: {count} array tasks; toolkit supports at most {MOST_TASKS} array tasks per job",
            fix="split the sweep into several launches",
        )
    return f"0-{count - 1}" + (f"%{parallel_tasks}" if parallel_tasks else "")


def names_of(sweep: Iterable[str]) -> list[str]:
    """Return the parameter names of a sweep."""
    return [item.partition("=")[0] for item in sweep]


def variable(name: str) -> str:
    """Return the name of the environment variable that contains the value of a parameter.

    >>> variable("learning-rate")
    'TOOLKIT_SWEEP_LEARNING_RATE'
    """
    return f"TOOLKIT_SWEEP_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"


def placeholder(name: str) -> str:
    """Return the placeholder ``{NAME}``, which toolkit replaces by the parameter's value in a command."""
    return f"{{{name}}}"


def fill_command(words: Iterable[str], row: Row) -> tuple[str, ...]:
    """Return a command with the values of a task in place of placeholders.

    A shell's ``${NAME}`` is not a placeholder.
    """
    pattern = re.compile(rf"(?<!\$)\{{({'|'.join(map(re.escape, row))})\}}")
    return tuple(pattern.sub(lambda found: row[found[1]], word) for word in words)


def pieces(sweep: Iterable[str]) -> dict[str, str]:
    """Map each placeholder to the shell code that replaces it in a job script.

    The function :func:`toolkit.render.quote_around` replaces the placeholders.
    """
    found: dict[str, str] = {}
    for name in names_of(sweep):
        found[placeholder(name)] = f'"${variable(name)}"'
        found[f"${placeholder(name)}"] = quote_word(f"${placeholder(name)}")
    return found


def lines(sweep: Iterable[str]) -> list[str]:
    """Return one shell line for each task; the line exports the variables with the task's values."""
    return [
        "export " + " ".join(f"{variable(name)}={quote_word(value)}" for name, value in row.items())
        for row in rows(sweep)
    ]


def describe_values(row: Row) -> str:
    """Return the values of a task in the form ``lr=0.1 seed=2``."""
    plain = re.compile(r"[^\s\"']+")
    shown = {name: value if plain.fullmatch(value) else f'"{value}"' for name, value in row.items()}
    return " ".join(f"{name}={value}" for name, value in shown.items())


def _pieces(text: str) -> list[tuple[str, str]]:
    """Split a list of values. Return the pair ``(text, "")`` for a quoted value, and ``("", text)`` for an
    unquoted value.
    """
    found, at = [], 0
    while True:
        match = _VALUE.match(text, at)
        assert match is not None  # noqa: S101 - the second alternative of the pattern matches any text
        quote = text[match.start() : match.end()] if match[1] is not None else ""
        found.append((quote, match[2] or ""))
        at = match.end() + 1
        if match.end() >= len(text):
            return found


def _values(text: str) -> list[str]:
    values: list[str] = []
    for quote, plain in _pieces(text):
        if quote:
            values.append(quote[1:-1].replace('""', '"'))
        elif match := _RANGE.fullmatch(plain):
            first, last, step = match[1], match[2], int(match[3] or 1)
            width = max(len(first), len(last)) if re.match(r"0\d", first) else 0
            values += [f"{number:0{width}}" for number in range(int(first), int(last) + 1, step)]
        else:
            values.append(plain)
    return values


def _fault_of_range(text: str) -> str:
    match = _RANGE.fullmatch(text)
    if match is None:
        fraction = _FRACTIONS.fullmatch(text)
        return f"{text}: a range needs whole numbers; write each value instead" if fraction else ""
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if last < first:
        return f"the range {text} is reversed; write the smaller number first"
    if step == 0:
        return f"{text}: the step must be at least 1"
    return (
        f"{text}: a range may have at most {MOST_TASKS} values"
        if (last - first) // step >= MOST_TASKS
        else ""
    )
