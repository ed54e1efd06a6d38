"""Options that the commands of ``toolkit image`` share."""

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from toolkit.cli.frame.say import say
from toolkit.errors import BadInput, Missing
from toolkit.image.locks.origins import ACCEPT
from toolkit.model.facts import HostFacts
from toolkit.model.signature import FileSignature

ACCEPT_OPTION = click.option(
    ACCEPT,
    "accepted",
    multiple=True,
    metavar="HOST",
    help="Allow downloads of the lock's files from HOST; repeatable",
)


def _key_file(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Path | None:
    """Return the path of a file of public keys.

    An empty value is an error, because an unset variable in a script must not turn off the signature check.
    """
    if value is None:
        return None
    if not value.strip():
        raise BadInput(
            "--verify-key: the value is empty",
            fix="give a file of public keys; if you gave a shell variable, set the variable",
        )
    path = Path(value)
    from toolkit.run.gpg import check_keyring  # slow import, which --help does not need

    check_keyring(path, "--verify-key")
    return path


VERIFY_KEY = click.option(
    "--verify-key",
    metavar="FILE",
    callback=_key_file,
    help="Refuse a lock or bundle that is not signed with a key in FILE",
)
_F = TypeVar("_F", bound=Callable[..., Any])


def cluster_options(function: _F) -> _F:
    """Add ``--facts`` and ``--site`` to a command.

    The command receives the cluster's facts as the argument ``host``. If the user gives neither option,
    ``host`` is ``None``.
    """

    @functools.wraps(function)
    def with_host(*words: Any, facts: Path | None, site: str | None, **options: Any) -> Any:  # noqa: ANN401 - click's values
        return function(*words, host=host_of(facts, site), **options)

    file = click.Path(path_type=Path)
    known = click.option(
        "--facts", metavar="FILE", type=file, help="Facts file of the cluster, from toolkit probe -o"
    )
    named = click.option(
        "--site", metavar="NAME", help="Use the facts that `toolkit init` saved for this site"
    )
    return known(named(with_host))  # type: ignore[return-value] # an option returns the decorated function


def host_of(facts: Path | None, site: str | None) -> HostFacts | None:
    """Return the facts of the image's target cluster, from ``--facts`` or ``--site``.

    The result is ``None`` if the user gives neither ``--facts`` nor ``--site``.

    Raises:
        BadInput: if the file is not a facts file, or the user gives both ``--facts`` and ``--site``.
        Missing: if no facts were saved for the site.
    """
    if facts is None and site is None:
        return None
    from toolkit.probe.probe import load

    if facts is not None and site is not None:
        raise BadInput("--facts and --site: cannot be combined; leave out one of them")
    return load(facts or _facts_of(site or ""))


def _facts_of(site: str) -> Path:
    from toolkit.knowledge import sites

    sites.site(site)  # first report an unknown site or an invalid profile
    file = sites.facts_file(site)
    if not file.is_file():
        raise Missing(
            f"--site {site}: the facts of the site are missing: {file} does not exist",
            fix=f"probe the site: `toolkit probe --host LOGIN_NODE -o {shlex.quote(str(file))}`, or run "
            "`toolkit init` on the login node",
        )
    return file


def say_lock_signature(recipe: str, keyring: Path | None) -> FileSignature | None:
    """Print on standard error who signed the lock of a recipe, and return the result of the signature check.

    Without ``keyring``, the function skips a missing lock and a lock that came with toolkit: it prints
    nothing and returns ``None``.

    Raises:
        CheckFailed, BadInput, Missing: as in :func:`~toolkit.image.trust.detached.lock_signature`.
    """
    from toolkit.image.locks.lock import lock_path
    from toolkit.image.trust.detached import lock_signature

    found = lock_signature(recipe, keyring)
    if found is not None:
        say(f"{lock_path(recipe)}: {found.description}", err=True)
    return found
