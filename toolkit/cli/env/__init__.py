"""``toolkit env``: add the user's packages to an image without changing the image; one module per command."""

import click

from toolkit.cli.frame.lazy import LazyGroup

_COMMANDS = {
    "create": ("toolkit.cli.env.create", "Put packages over an image, as one file"),
    "add": ("toolkit.cli.env.add", "Add packages, or build the environment over a newer image"),
    "remove": ("toolkit.cli.env.remove", "Remove packages"),
    "list": ("toolkit.cli.env.list", "List the packages and their sources"),
    "check": ("toolkit.cli.env.check", "Compare an environment with its lock and an image"),
    "diff": ("toolkit.cli.env.diff", "Show how two environments differ"),
}


@click.group("env", cls=LazyGroup, table=_COMMANDS)
def command() -> None:
    """Put your packages over an image of your centre, as one file.

    The file is mounted over the image when a job starts: `toolkit launch --env-image FILE`. These commands
    need no root, no Docker and no change of the image.
    """
