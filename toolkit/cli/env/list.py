"""``toolkit env list``: list the packages of an environment."""

from pathlib import Path

import click

from toolkit.cli.env.common import ENV
from toolkit.cli.frame.say import say, say_json, say_text
from toolkit.cli.options.outputs import json_option
from toolkit.image.envs.lockfile import read_env
from toolkit.report.table import table


@click.command("list")
@ENV
@json_option()
def command(env: Path, as_json: bool) -> None:
    """List the packages of ENV, and the image for which toolkit built ENV."""
    lock = read_env(env)
    if as_json:
        say_json(lock, indent=True)
        return
    say(f"{env}: for {lock.base.name} ({lock.base.digest[:19]}…), Python {lock.base.python}")
    rows = [
        (one.name, one.version, "built in the image" if one.built else "wheel", ", ".join(one.via) or "you")
        for one in lock.packages
    ]
    say_text(table(("package", "version", "from", "required by"), rows))
    for one, why in lock.left.items():
        say(f"left out: {one}: {why}")
    for folder in lock.outside:
        say(f"not in the environment: {folder}; jobs read this folder directly")
