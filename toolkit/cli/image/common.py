"""What the commands of ``toolkit image`` share."""

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from toolkit.errors import BadInput, Missing
from toolkit.model.facts import HostFacts

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON")
_F = TypeVar("_F", bound=Callable[..., Any])


def cluster_options(function: _F) -> _F:
    """Give a command ``--facts`` and ``--site``, and their facts as ``host``, ``None`` without either."""

    @functools.wraps(function)
    def with_host(*words: Any, facts: Path | None, site: str | None, **options: Any) -> Any:  # noqa: ANN401 - click's
        return function(*words, host=host_of(facts, site), **options)

    file = click.Path(path_type=Path)
    known = click.option("--facts", metavar="FILE", type=file, help="Facts that toolkit probe -o saved")
    named = click.option("--site", metavar="NAME", help="A site whose facts toolkit init saved")
    return known(named(with_host))  # type: ignore[return-value]  # an option keeps what it decorates


def host_of(facts: Path | None, site: str | None) -> HostFacts | None:
    """Return the cluster that an image is for: the one place where an option becomes facts.

    Raises:
        BadInput: if the file holds none, or both are given.
        Missing: if the site's facts were not saved.
    """
    if facts is None and site is None:
        return None
    from toolkit.probe.probe import load

    if facts is not None and site is not None:
        raise BadInput("--facts and --site: facts come from a file or from a site; leave one of them out")
    return load(facts or _facts_of(site or ""))


def _facts_of(site: str) -> Path:
    from toolkit.knowledge import sites

    sites.site(site)  # what is wrong with the profile is said before its facts are missed
    file = sites.facts_file(site)
    if not file.is_file():
        raise Missing(
            f"--site {site}: its facts are not known here: {file} is not there",
            fix=f"toolkit probe --host LOGIN_NODE -o {shlex.quote(str(file))}, or toolkit init there",
        )
    return file


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
