"""Options of the commands that access a registry."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolkit.files import check_given

if TYPE_CHECKING:
    from toolkit.run.registry.session import RegistryAccess

_F = TypeVar("_F", bound=Callable[..., Any])


def registry_options(function: _F) -> _F:
    """Add ``--ca``, ``--plain-http`` and ``--platform`` to a command."""
    for option in (
        click.option(
            "--platform",
            metavar="OS/ARCH",
            default="",
            help="Platform of a multi-platform image, such as linux/arm64",
        ),
        click.option(
            "--plain-http",
            is_flag=True,
            help="Connect without TLS (the default for a registry on this machine)",
        ),
        click.option(
            "--ca",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="File with the certificates of a private CA, in PEM format",
        ),
    ):
        function = option(function)
    return function


def access(ca: Path | None, *, plain_http: bool) -> "RegistryAccess":
    """Return the settings for connections to a registry, from ``--ca`` and ``--plain-http``.

    Raises:
        BadInput: if the certificate file cannot be read.
    """
    from toolkit.run.registry.session import RegistryAccess

    if ca is not None:
        check_given(ca, label="--ca")
    return RegistryAccess(ca, plain_http)
