"""Rewrite click's errors about options and arguments in toolkit's form: ``--OPTION: FAULT`` or
``ARGUMENT: FAULT``.
"""

import re

import click

from toolkit.cli.frame.empty import spelling
from toolkit.near import suggest_near

_CHOICE = re.compile(r"(?P<value>'.*'|\".*\") is not (?:one of )?'")
_STARTS_WITH_VALUE = re.compile(r"""('[^']*'|"[^"]*"|-?\d+): """)
_EXTRA = re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)", re.DOTALL)
_NO_VALUE = re.compile(r"Option '.*' requires (an|\d+) arguments?")
_UNWANTED_VALUE = re.compile(r"Option '.*' does not take a value")


def message_of(error: click.ClickException) -> str:
    """Return one line that describes the fault of a command line.

    An example is `--nodes 'two': expected a whole number …`.
    """
    if isinstance(error, click.MissingParameter):
        return f"{_thing(error)}: missing{_choices(error.param)}"
    if isinstance(error, click.BadParameter):
        return _of_value(error)
    if isinstance(error, click.NoSuchOption):
        close = f" (did you mean {error.possibilities[0]}?)" if error.possibilities else ""
        return f"{error.option_name}: no such option{close}"
    said = _line(error.message)
    if isinstance(error, click.BadOptionUsage) and _NO_VALUE.match(said):
        return f"{error.option_name}: the value is missing"
    if isinstance(error, click.BadOptionUsage) and _UNWANTED_VALUE.match(said):
        return f"{error.option_name}: this option takes no value"
    if extra := _EXTRA.match(said):
        return f"{extra['words']}: unexpected argument"
    return _lower(said)


def _of_value(error: click.BadParameter) -> str:
    thing, said = _thing(error), _lower(_line(error.message))
    if error.param and isinstance(error.param.type, click.Choice) and (found := _CHOICE.match(said)):
        close = suggest_near(found["value"][1:-1], map(str, error.param.type.choices))
        return f"{thing} {found['value']}: unknown value{close}{_choices(error.param)}"
    return f"{thing}{' ' if _STARTS_WITH_VALUE.match(said) else ': '}{said}"


def _thing(error: click.BadParameter) -> str:
    """Return the name of the option or argument that has the fault, as a user writes the name."""
    if error.param is not None:
        return spelling(error.param)
    hint = error.param_hint or "command line"
    return hint if isinstance(hint, str) else " / ".join(hint)


def _choices(param: click.Parameter | None) -> str:
    if param is None or not isinstance(param.type, click.Choice):
        return ""
    return f"; choices: {', '.join(map(str, param.type.choices))}"


def _line(message: str) -> str:
    return " ".join(message.split()).rstrip(".")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
