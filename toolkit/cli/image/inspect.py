"""``toolkit image inspect``: show the contents of an image without starting it."""

import click

from toolkit import app
from toolkit.cli.frame.say import say, say_json
from toolkit.cli.frame.styles import width_of_terminal
from toolkit.cli.options.outputs import json_option
from toolkit.report.inspected import lines
from toolkit.report.progress import Progress


@click.command("inspect")
@click.argument("image")
@click.option(
    "--platform",
    metavar="OS/ARCH",
    default="",
    help="Platform of a multi-platform image, such as linux/arm64",
)
@json_option()
@click.pass_context
def command(ctx: click.Context, image: str, platform: str, as_json: bool) -> None:
    """Show the contents of IMAGE without starting it.

    IMAGE is a SIF, a squashfs, a sandbox folder, an OCI layout, or a Docker or OCI archive. An archive may
    be compressed with gzip or zstd. IMAGE may also be docker-archive:FILE, oci-archive:FILE[:NAME] or
    oci:FOLDER[:NAME]. For an image in the Docker engine, give docker-daemon:NAME:TAG, or NAME:TAG if no file
    has this name.

    First, toolkit compares the image with the checksum in IMAGE.sha256. If IMAGE.sha256 does not exist,
    toolkit detects damage only in the parts of the image that toolkit reads.

    \b
    Examples:
      toolkit image inspect my.sif
      toolkit image inspect docker-daemon:my/image:latest --json
    """
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        facts = app.inspect(image, platform=platform, tell=tell)
    if as_json:
        say_json(facts, indent=True)
        return
    say(*lines(facts, width_of_terminal()))
