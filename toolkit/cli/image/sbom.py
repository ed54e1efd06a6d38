"""``toolkit image sbom``: print what an image is made of."""

import click

from toolkit.cli.frame.say import say_json
from toolkit.image.trust.papers import sbom_of
from toolkit.report.progress import Progress


@click.command("sbom")
@click.argument("image")
@click.pass_context
def command(ctx: click.Context, image: str) -> None:
    """Print the bill of materials of IMAGE, as CycloneDX JSON.

    An image that was built from a lock has one with it: every Debian package, wheel and source archive with
    its hash, also what package lists cannot see, as a compiled MPI, and what Horovod was built with. Of any
    other, what is found in it is listed; what was not read stands in toolkit:not-read.

    \b
    Examples:
      toolkit image sbom my.sif > my.cdx.json
      toolkit image sbom docker-daemon:some/image:latest
    """
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        text = sbom_of(image, tell)
    say_json(text.rstrip())
