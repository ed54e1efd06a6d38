"""``toolkit env diff``: show how two environments differ."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.image.envs.check import changes
from toolkit.image.envs.lockfile import read_env

_FILE = click.Path(path_type=Path)


@click.command("diff")
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@json_option()
def command(old: Path, new: Path, as_json: bool) -> None:
    """Show how the packages and the image of the environment NEW differ from the environment OLD."""
    before, after = read_env(old), read_env(new)
    found = changes(before, after)
    if as_json:
        say_json(found, indent=True)
        return
    if before.base.digest != after.base.digest:
        say(f"image: {before.base.name} → {after.base.name}")
    for one in found:
        say(f"{one.name}: {one.old or 'none'} → {one.new or 'none'}")
    if not found:
        say("both environments have the same packages")
