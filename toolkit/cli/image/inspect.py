"""``toolkit image inspect``: what is in an image, which is not started."""

import click

from toolkit import app
from toolkit.cli.frame.say import say, say_json
from toolkit.cli.frame.styles import width_of_terminal
from toolkit.cli.image.common import JSON
from toolkit.report.inspected import lines
from toolkit.report.progress import Progress


@click.command("inspect")
@click.argument("image")
@click.option("--platform", default="", help="Choose in an image for several: linux/arm64")
@JSON
@click.pass_context
def command(ctx: click.Context, image: str, platform: str, as_json: bool) -> None:
    """Say what is in IMAGE without starting it.

    IMAGE is a SIF, a squashfs, a sandbox folder, a docker or OCI archive (also with gzip or zstd) or an OCI
    layout; or docker-archive:FILE, oci-archive:FILE[:NAME], oci:FOLDER[:NAME]; or an image of the Docker
    engine: docker-daemon:NAME:TAG, or NAME:TAG where there is no such file.

    A checksum beside it, IMAGE.sha256, is compared first. Without one, only damage in the parts that are
    read here is noticed.

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
