"""The user's variables for the ranks, from options and files; pure.

A value from the user's environment or from an env file is secret, and so is a value with a name such as
``WANDB_API_KEY``. toolkit sends secret values to the job in a separate file.
"""

import re
import shlex
from collections.abc import Iterable, Mapping

from toolkit.errors import BadInput
from toolkit.launch.request import sweep_values
from toolkit.model.hidden import Hidden
from toolkit.model.job import JobSpec

FILE = "variables.sh"
"""The script in the job's folder that sets the variables and starts the command; the job script writes it."""

SECRETS = "secrets.sh"
"""The file in the job's folder that sets the secret variables; toolkit writes it before the submission."""

_END = "END"
_SECRET = re.compile(
    r"(^|_)(PASSWD|PASSPHRASE|PWD|CREDENTIALS?|AUTH|KEYS?|COOKIE)(_|$)|PASSWORD|SECRET|APIKEY|TOKEN(_|$)"
)
_HARMLESS = {"PWD", "OLDPWD"}


def looks_secret(name: str) -> bool:
    """Return whether the name of a variable suggests a secret, such as ``WANDB_API_KEY``."""
    return name.upper() not in _HARMLESS and _SECRET.search(name.upper()) is not None


def parse_pairs(pairs: Iterable[str], environment: Mapping[str, str], label: str) -> dict[str, str]:
    """Read ``NAME=VALUE``, or ``NAME`` alone for the value in ``environment``.

    Args:
        label: the source of the pairs, such as ``--env``; each message begins with it.

    Raises:
        BadInput: for an invalid name, or a name that ``environment`` does not have.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not name:
            raise BadInput(f"{label}: a variable without a name", fix="write NAME=VALUE, or NAME alone")
        check_name(name, label)
        found[name] = value if separator else from_caller(name, environment, label)
    return found


def from_caller(name: str, environment: Mapping[str, str], label: str) -> Hidden:
    """Return the value of a variable in toolkit's own environment.

    Raises:
        BadInput: if the variable is not set.
    """
    if name not in environment:
        raise BadInput(
            f"{label} {name}: the variable is not set",
            fix=f"`read -rs {name} && export {name}`, then run the command again",
        )
    return Hidden(environment[name])


def parse_env_file(text: str, environment: Mapping[str, str], label: str) -> dict[str, Hidden]:
    """Read an env file as Docker does: ``NAME=VALUE``, ``NAME`` alone, empty lines, and comments after ``#``.

    Values are taken literally: quotation marks are part of the value, and variables are not expanded.

    Raises:
        BadInput: with the line, and never the value.
    """
    found: dict[str, Hidden] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.removesuffix("\r").lstrip()
        if stripped and not stripped.startswith("#"):
            pairs = parse_pairs([stripped], environment, f"{label}:{number}")
            found |= {name: Hidden(value) for name, value in pairs.items()}
    return found


def hide_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables; a value is hidden if its name suggests a secret."""
    return {name: Hidden(value) if looks_secret(name) else value for name, value in variables.items()}


def secrets_of_record(
    names: Iterable[str], given: Mapping[str, Hidden], environment: Mapping[str, str]
) -> dict[str, Hidden]:
    """Return the values of the secret variables of a record, which keeps only their names.

    Raises:
        BadInput: if variables are neither given nor set in ``environment``; the message names them.
    """
    names = tuple(names)
    if absent := [name for name in names if name not in given and name not in environment]:
        raise BadInput(
            f"{', '.join(absent)}: not set; toolkit does not store secret values in a job record",
            fix=f"`read -rs {absent[0]} && export {absent[0]}`, then run the command again",
        )
    return {name: given.get(name, Hidden(environment.get(name, ""))) for name in names}


def check_name(name: str, label: str) -> None:
    """Refuse an invalid name of a variable.

    Raises:
        BadInput: with the name.
    """
    if not name.isidentifier() or not name.isascii():
        raise BadInput(f"{label} {name}: not a valid variable name; use letters, digits and _")


def names_of(spec: JobSpec) -> tuple[str, ...]:
    """Return the names of all variables that the user gives to the ranks.

    Raises:
        BadInput: for an invalid name.
    """
    of_sweep = map(sweep_values.variable, sweep_values.names_of(spec.sweep))
    names = tuple(dict.fromkeys((*spec.env, *spec.secrets, *of_sweep)))
    for name in names:
        check_name(name, "--env")
    return names


def script_of(spec: JobSpec) -> str:
    """Return the content of :data:`FILE`; empty if there is no variable to set."""
    if not names_of(spec):
        return ""
    lines = [f"export {name}={_quoted(name, value)}" for name, value in spec.env.items()]
    lines += [f'. "${{0%/*}}/{SECRETS}"'] if spec.secrets else []
    lines += [f'. "${{0%/*}}/{sweep_values.FILE}"'] if spec.sweep else []
    return "\n".join([*lines, 'exec "$@"', ""])


def secrets_of(values: Mapping[str, Hidden]) -> bytes:
    """Return the content of :data:`SECRETS`.

    Raises:
        BadInput: for a value with a NUL byte, which a variable cannot contain.
    """
    lines = (f"export {name}={_quoted(name, value.reveal())}\n" for name, value in values.items())
    return "".join(lines).encode("utf-8", "surrogateescape")


def end_of(text: str) -> str:
    """Return an end mark for a here-document with this text: a word that is not a line of the text."""
    word = _END
    while word in text.split("\n"):
        word += "_"
    return word


def _quoted(name: str, value: str) -> str:
    if "\0" in value:
        raise BadInput(f"--env {name}: the value contains a NUL byte, which a variable cannot have")
    return shlex.quote(value)
