"""Variables that a person gives to the ranks: read from options and files; pure.

A value from the caller's environment or from an env file is secret: it goes to the job in a file of its own.
So is a value whose name says so.
"""

import re
import shlex
from collections.abc import Iterable, Mapping

from toolkit.errors import BadInput
from toolkit.model.hidden import Hidden
from toolkit.model.job import JobSpec

FILE = "variables.sh"
"""The file of the job's folder that sets the variables and becomes the command; the job script writes it."""

SECRETS = "secrets.sh"
"""The file of the job's folder that sets the secret ones; toolkit writes it before it submits."""

_END = "END"
_SECRET = re.compile(
    r"(^|_)(PASSWD|PASSPHRASE|PWD|CREDENTIALS?|AUTH|KEYS?|COOKIE)(_|$)|PASSWORD|SECRET|APIKEY|TOKEN(_|$)"
)
_HARMLESS = {"PWD", "OLDPWD"}


def looks_secret(name: str) -> bool:
    """Tell whether the name of a variable says that its value is a secret, as ``WANDB_API_KEY``."""
    return name.upper() not in _HARMLESS and _SECRET.search(name.upper()) is not None


def of_pairs(pairs: Iterable[str], environment: Mapping[str, str], label: str) -> dict[str, str]:
    """Read ``NAME=VALUE``, and ``NAME`` alone for the value that ``environment`` has.

    Args:
        label: where the pairs stand, as in ``--env``; it begins each message.

    Raises:
        BadInput: for a name that no variable can have, or one that is not set in ``environment``.
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
    """Return the value that a variable has where toolkit is called.

    Raises:
        BadInput: if it is not set.
    """
    if name not in environment:
        raise BadInput(
            f"{label} {name}: the variable is not set here",
            fix=f"read -rs {name} && export {name}, then the same command",
        )
    return Hidden(environment[name])


def of_file(text: str, environment: Mapping[str, str], label: str) -> dict[str, Hidden]:
    """Read an env file as Docker does: ``NAME=VALUE``, ``NAME`` alone, empty lines, and comments after ``#``.

    Nothing is unquoted or expanded: quotation marks are part of the value.

    Raises:
        BadInput: naming the line, and never the value.
    """
    found: dict[str, Hidden] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.removesuffix("\r").lstrip()
        if stripped and not stripped.startswith("#"):
            pairs = of_pairs([stripped], environment, f"{label}:{number}")
            found |= {name: Hidden(value) for name, value in pairs.items()}
    return found


def guarded(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with every value hidden whose name says that it is a secret."""
    return {name: Hidden(value) if looks_secret(name) else value for name, value in variables.items()}


def needed(
    names: Iterable[str], given: Mapping[str, Hidden], environment: Mapping[str, str]
) -> dict[str, Hidden]:
    """Return the values of secret variables of which a record keeps the names alone.

    Raises:
        BadInput: naming every one that is neither given nor set in ``environment``.
    """
    names = tuple(names)
    if absent := [name for name in names if name not in given and name not in environment]:
        raise BadInput(
            f"{', '.join(absent)}: the record keeps no secret values, and the variable is not set here",
            fix=f"read -rs {absent[0]} && export {absent[0]}, then the same command",
        )
    return {name: given.get(name, Hidden(environment.get(name, ""))) for name in names}


def check_name(name: str, label: str) -> None:
    """Refuse a name that no variable can have.

    Raises:
        BadInput: naming it.
    """
    if not name.isidentifier() or not name.isascii():
        raise BadInput(f"{label} {name}: not a name for a variable; use letters, digits and _")


def names_of(spec: JobSpec) -> tuple[str, ...]:
    """Return the names of all variables that a person gives to the ranks.

    Raises:
        BadInput: for a name that no variable can have.
    """
    names = (*spec.env, *(name for name in spec.secrets if name not in spec.env))
    for name in names:
        check_name(name, "--env")
    return names


def script_of(spec: JobSpec) -> str:
    """Return the content of :data:`FILE`; empty if there is no variable to set."""
    if not names_of(spec):
        return ""
    lines = [f"export {name}={_quoted(name, value)}" for name, value in spec.env.items()]
    lines += [f'. "${{0%/*}}/{SECRETS}"'] if spec.secrets else []
    return "\n".join([*lines, 'exec "$@"', ""])


def secrets_of(values: Mapping[str, Hidden]) -> bytes:
    """Return the content of :data:`SECRETS`.

    Raises:
        BadInput: for a value with a NUL byte, which no variable can have.
    """
    lines = (f"export {name}={_quoted(name, value.reveal())}\n" for name, value in values.items())
    return "".join(lines).encode("utf-8", "surrogateescape")


def end_of(text: str) -> str:
    """Return a word that ends a here-document with this text: no line of it is that word."""
    word = _END
    while word in text.split("\n"):
        word += "_"
    return word


def _quoted(name: str, value: str) -> str:
    if "\0" in value:
        raise BadInput(f"--env {name}: the value holds a NUL byte, which no variable can have")
    return shlex.quote(value)
