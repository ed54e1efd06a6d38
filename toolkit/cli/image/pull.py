"""``toolkit image pull``: download an image from a registry into one file."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.image.registry import access, registry_options
from toolkit.cli.options.outputs import json_option
from toolkit.report.progress import Progress
from toolkit.units import format_size


@click.command("pull")
@click.argument("source")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="File to write")
@registry_options
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    output: Path,
    ca: Path | None,
    plain_http: bool,
    platform: str,
    as_json: bool,
) -> None:
    """Download SOURCE (docker://HOST/NAME:TAG or oras://...) from a registry, and verify every byte.

    A SIF stays a SIF. Any other image becomes an archive that `docker load` and toolkit can read.
    After an interruption, toolkit keeps the downloaded part beside the output file. Run the command again to
    resume the download.

    \b
    Examples:
      toolkit image pull oras://registry.my-centre.example/ml/tf:2.15 -o tf.sif
      toolkit image pull docker://centre.example/tf:2.15 -o tf.tar --ca my-ca.pem
    """
    from toolkit.image.transfer.pull import pull
    from toolkit.run.registry.name import parse_name

    name = parse_name(source)
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        pulled = pull(name, output, access(ca, plain_http=plain_http), tell, platform=platform)
    if as_json:
        say_json(pulled, indent=True)
        return
    say(f"{pulled.path}  {format_size(pulled.bytes)}  sha256:{pulled.sha256}")
