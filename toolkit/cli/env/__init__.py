"""``toolkit env``: add the user's packages to an image without changing the image; one module per command."""

import click

from toolkit.cli.frame.lazy import LazyGroup

_COMMANDS = {
    "create": ("toolkit.cli.env.create", "Write a file with packages for an image"),
    "add": ("toolkit.cli.env.add", "Add packages, or rebuild the environment for a newer image"),
    "remove": ("toolkit.cli.env.remove", "Remove packages"),
    "list": ("toolkit.cli.env.list", "List the packages and their sources"),
    "check": ("toolkit.cli.env.check", "Compare an environment with its lock and an image"),
    "diff": ("toolkit.cli.env.diff", "Show how two environments differ"),
}


@click.group("env", cls=LazyGroup, table=_COMMANDS)
def command() -> None:
    """Add your packages to an image of your computing centre, as one file.

    `toolkit launch --env-image FILE` mounts the file over the image when a job starts. The commands of
    toolkit env need neither root rights nor Docker, and do not change the image.
    """
