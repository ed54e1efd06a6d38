"""``toolkit image sbom``: print the software bill of materials of an image."""

import click

from toolkit.cli.frame.say import say_json
from toolkit.image.trust.attachments import sbom_of
from toolkit.report.progress import Progress


@click.command("sbom")
@click.argument("image")
@click.pass_context
def command(ctx: click.Context, image: str) -> None:
    """Print the software bill of materials of IMAGE, as CycloneDX JSON.

    An image that was built from a lock contains a bill of materials. The bill names every Debian package,
    wheel and source archive with its hash. The bill also names a compiled MPI and the build options of
    Horovod, which package lists do not show. If IMAGE contains no bill of materials, toolkit lists the
    packages that it finds in IMAGE. The property toolkit:not-read then names the parts of IMAGE that toolkit
    did not read.

    \b
    Examples:
      toolkit image sbom my.sif > my.cdx.json
      toolkit image sbom docker-daemon:some/image:latest
    """
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        text = sbom_of(image, tell)
    say_json(text.rstrip())
