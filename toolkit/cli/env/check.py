"""``toolkit env check``: check an environment's checksum and packages, and its base image."""

from pathlib import Path

import click

from toolkit.cli.env.common import ENV
from toolkit.cli.frame.say import say, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.errors import CheckFailed
from toolkit.image.envs.check import AGAIN, check_env
from toolkit.job.request.locations import find_image
from toolkit.report.progress import Progress


@click.command("check")
@ENV
@click.option("--over", metavar="IMAGE", help="Image to compare with the environment's base image")
@json_option()
@click.pass_context
def command(ctx: click.Context, env: Path, over: str | None, as_json: bool) -> None:
    """Check the checksum of ENV, and compare its packages with its lock.

    The lock is a list of packages and versions that toolkit stored in ENV. The base image is the image for
    which toolkit built ENV. With --over, toolkit also compares IMAGE with the base image.
    """
    image = find_image(over) if over else None
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        found = check_env(env, image, tell)
    if as_json:
        say_json(found, indent=True)
    else:
        for one in found.checks:
            say(f"{'ok' if one.ok else 'failed':<8}{one.name}: {one.told}")
    if not found.ok:
        first = next(one for one in found.checks if not one.ok)
        raise CheckFailed(f"{env}: {first.told}", fix=AGAIN.format(env, over or "IMAGE"))
