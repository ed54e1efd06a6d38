"""The options that describe a job: one option for each field in ``toolkit/model/jobfile.py``."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from toolkit.cli.options.whole import WholeNumber
from toolkit.model.jobfile import FIELDS, JobField

_F = TypeVar("_F", bound=Callable[..., Any])


_METAVARS = {"image": "IMAGE", "time": "TIME"}
"""Job field → its placeholder in ``--help``, if the field itself does not set ``metavar``."""


def _option(field: JobField) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names and the keyword arguments with which click creates the option of a job field."""
    more: dict[str, Any] = {"help": field.help}
    if field.flag:
        return (f"{field.option_name}/--no-{field.option_name.removeprefix('--')}",), {
            **more,
            "default": None,
        }
    if field.metavar or not (field.choices or field.bounds):
        more["metavar"] = field.metavar or _METAVARS.get(field.name, "NAME")
    if field.many:
        more["multiple"] = True
    if field.choices:
        more["type"] = click.Choice(field.choices)
        more["metavar"] = field.name.upper()
        more["help"] = f"{field.help}: {', '.join(field.choices)}"
    if field.bounds:
        more["type"] = WholeNumber(field.bounds[0])
    return (field.option_name, *([field.name] if field.option else [])), more


def job_options(function: _F) -> _F:
    """Add all job options to a command. An option that is not given is ``None``, or ``()`` if repeatable."""
    return job_options_without()(function)


def job_options_without(*names: str) -> Callable[[_F], _F]:
    """Return a decorator that adds all job options except the options of the named fields."""
    return job_options_of(*(name for name in _fields() if name not in names))


def job_options_of(*names: str) -> Callable[[_F], _F]:
    """Return a decorator that adds the options of the named job fields."""

    def add(function: _F) -> _F:
        for field in reversed(FIELDS):
            if field.name in names:
                option, more = _option(field)
                function = click.option(*option, **more)(function)
        return function

    return add


def given_fields(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job fields whose options the user gave, with their values.

    ``parameters`` contains all parameters of the command.

    Raises:
        BadInput: if ``--env NAME=VALUE`` is invalid, or if ``--env NAME`` names a variable that is not set in
            toolkit's environment.
    """
    said = {name: parameters[name] for name in _fields() if parameters.get(name) not in (None, ())}
    if "env" in said:
        said["env"] = environment(said["env"])
    return said


def without_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the command that are not job fields."""
    fields = set(_fields())
    return {name: value for name, value in parameters.items() if name not in fields}


def _fields() -> list[str]:
    return [field.name for field in FIELDS]


def environment(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of ``--env``. If a variable's name suggests a secret, toolkit hides the value in
    its output. Warn if a secret value is on the command line.

    Each item of ``pairs`` is ``NAME=VALUE``, or ``NAME`` for a variable of toolkit's environment.

    Raises:
        BadInput: if a variable is invalid or not set.
    """
    import os

    from toolkit.cli.frame.say import say
    from toolkit.launch.request.variables import hide_secrets, parse_pairs
    from toolkit.model.hidden import secrets_among

    found = parse_pairs(pairs, os.environ, "--env")
    given = hide_secrets(found)
    if exposed := [name for name in secrets_among(given) if name not in secrets_among(found)]:
        names = ", ".join(exposed)
        say(
            f"warning: --env {exposed[0]}=…: the value of {names} is in the argument list of this command, "
            f"which all users of this machine can see; export the variable and write --env {exposed[0]}",
            err=True,
        )
    return given
