"""``toolkit env``: put packages for an image into a separate file. Each subcommand has its own module."""

import click

from toolkit.cli.frame.lazy import LazyGroup

_COMMANDS = {
    "create": ("toolkit.cli.env.create", "Write an environment: a file with packages for an image"),
    "add": ("toolkit.cli.env.add", "Add packages, or rebuild an environment for a newer image"),
    "remove": ("toolkit.cli.env.remove", "Remove packages from an environment"),
    "list": ("toolkit.cli.env.list", "List the packages of an environment"),
    "check": ("toolkit.cli.env.check", "Check the packages of an environment, and its base image"),
    "diff": ("toolkit.cli.env.diff", "Show how two environments differ"),
}


@click.group("env", cls=LazyGroup, table=_COMMANDS)
def command() -> None:
    """Write the packages that an image lacks into a separate file.

    This file is called an environment. `toolkit launch --env-image FILE` mounts the environment over the
    image when a job starts. The commands of toolkit env need neither root rights nor Docker. They never
    change the image, so you can use an image of your computing centre.
    """
