"""Read the variables that the user sets for the ranks, and compute the files that set them in the job.

A value is secret if it comes from the user's environment or an env file, or if the variable's name suggests a
secret, as ``WANDB_API_KEY`` does. toolkit writes secret values to a separate file. The package
``engine/planning`` chooses the variables that toolkit itself sets, such as ``NCCL_SOCKET_IFNAME``.
"""

import re
import shlex
from collections.abc import Iterable, Mapping

from toolkit.errors import BadInput
from toolkit.launch.request import sweep_values
from toolkit.model.hidden import Hidden
from toolkit.model.job import JobSpec

FILE = "variables.sh"
"""The script in the job's folder that sets the variables and starts the command. The job script writes this
file.
"""

SECRETS = "secrets.sh"
"""The file in the job's folder with the secret variables; toolkit writes this file before the submission."""

_END = "END"
_SECRET = re.compile(
    r"(^|_)(PASSWD|PASSPHRASE|PWD|CREDENTIALS?|AUTH|KEYS?|COOKIE)(_|$)|PASSWORD|SECRET|APIKEY|TOKEN(_|$)"
)
_HARMLESS = {"PWD", "OLDPWD"}


def looks_secret(name: str) -> bool:
    """Return whether the name of a variable suggests a secret, such as ``WANDB_API_KEY``."""
    return name.upper() not in _HARMLESS and _SECRET.search(name.upper()) is not None


def parse_pairs(pairs: Iterable[str], environment: Mapping[str, str], label: str) -> dict[str, str]:
    """Return the variables in ``pairs``; a word without ``=`` gets its value from ``environment``.

    Args:
        pairs: words of the form ``NAME=VALUE`` or ``NAME``.
        environment: toolkit's own environment variables.
        label: the source of the words, such as ``--env``; each error message starts with this text.

    Raises:
        BadInput: if a name is invalid, or ``environment`` lacks the variable of a word without ``=``.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not name:
            raise BadInput(f"{label}: a variable without a name", fix="write NAME=VALUE, or only NAME")
        check_name(name, label)
        found[name] = value if separator else from_caller(name, environment, label)
    return found


def from_caller(name: str, environment: Mapping[str, str], label: str) -> Hidden:
    """Return the value of a variable in toolkit's own environment, marked as secret.

    Raises:
        BadInput: if the variable is not set.
    """
    if name not in environment:
        raise BadInput(
            f"{label} {name}: the variable is not set",
            fix=f"set the variable: `read -rs {name} && export {name}`; then run the command again",
        )
    return Hidden(environment[name])


def parse_env_file(text: str, environment: Mapping[str, str], label: str) -> dict[str, Hidden]:
    """Return the variables in the text of an env file, which has the form of Docker's ``--env-file``.

    A line is ``NAME=VALUE``, only ``NAME``, empty, or a comment that starts with ``#``. Values are literal:
    quotation marks belong to the value, and toolkit does not expand variables.

    Raises:
        BadInput: if a line is wrong; the error names the line number but does not show the value.
    """
    found: dict[str, Hidden] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.removesuffix("\r").lstrip()
        if stripped and not stripped.startswith("#"):
            pairs = parse_pairs([stripped], environment, f"{label}:{number}")
            found |= {name: Hidden(value) for name, value in pairs.items()}
    return found


def hide_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, and mark a value as secret if the variable's name suggests a secret."""
    return {name: Hidden(value) if looks_secret(name) else value for name, value in variables.items()}


def secrets_of_record(
    names: Iterable[str], secrets: Mapping[str, Hidden], environment: Mapping[str, str]
) -> dict[str, Hidden]:
    """Return the values of a job's secret variables; the job record contains only the variables' names.

    Raises:
        BadInput: if a variable is neither in ``secrets`` nor in ``environment``; the message names it.
    """
    names = tuple(names)
    if absent := [name for name in names if name not in secrets and name not in environment]:
        raise BadInput(
            f"{', '.join(absent)}: not set; a job record does not contain the values of secret variables",
            fix=f"set the variable: `read -rs {absent[0]} && export {absent[0]}`; then run the command again",
        )
    return {name: secrets.get(name, Hidden(environment.get(name, ""))) for name in names}


def check_name(name: str, label: str) -> None:
    """Check the name of a variable; ``label`` is the start of the error message.

    Raises:
        BadInput: if the name is invalid.
    """
    if not name.isidentifier() or not name.isascii():
        raise BadInput(f"{label} {name}: not a valid variable name; use letters, digits and _")


def names_of(spec: JobSpec) -> tuple[str, ...]:
    """Return the names of all variables that the user sets for the ranks.

    Raises:
        BadInput: if a name is invalid.
    """
    of_sweep = map(sweep_values.variable, sweep_values.names_of(spec.sweep))
    names = tuple(dict.fromkeys((*spec.env, *spec.secrets, *of_sweep)))
    for name in names:
        check_name(name, "--env")
    return names


def script_of(spec: JobSpec) -> str:
    """Return the content of the file :data:`FILE`, or an empty string if the job sets no variable."""
    if not names_of(spec):
        return ""
    lines = [f"export {name}={_quoted(name, value)}" for name, value in spec.env.items()]
    lines += [f'. "${{0%/*}}/{SECRETS}"'] if spec.secrets else []
    lines += [f'. "${{0%/*}}/{sweep_values.FILE}"'] if spec.sweep else []
    return "\n".join([*lines, 'exec "$@"', ""])


def secrets_of(values: Mapping[str, Hidden]) -> bytes:
    """Return the content of the file :data:`SECRETS`.

    Raises:
        BadInput: if a value has a NUL byte, which a variable cannot contain.
    """
    lines = (f"export {name}={_quoted(name, value.reveal())}\n" for name, value in values.items())
    return "".join(lines).encode("utf-8", "surrogateescape")


def end_of(text: str) -> str:
    """Return a delimiter for a shell here-document with this text: a word that is not a line of the text."""
    word = _END
    while word in text.split("\n"):
        word += "_"
    return word


def _quoted(name: str, value: str) -> str:
    if "\0" in value:
        raise BadInput(f"--env {name}: the value contains a NUL byte, which a variable cannot have")
    return shlex.quote(value)
