"""``toolkit image sign``: say by a PGP signature that a SIF is yours."""

from pathlib import Path

import click

from toolkit.cli.image.common import JSON
from toolkit.cli.say import say, say_json
from toolkit.image.papers import full_object
from toolkit.image.signing import sign
from toolkit.report.progress import Progress


@click.command("sign")
@click.argument("sif", type=click.Path(path_type=Path))
@click.option("--key", required=True, metavar="FINGERPRINT|EMAIL", help="Key of yours that gpg has")
@click.option(
    "--provenance",
    type=click.Choice(["lock", "full"]),
    default="lock",
    show_default=True,
    help="full: add who built it, with what and when, from SIF.provenance.json",
)
@JSON
@click.pass_context
def command(ctx: click.Context, sif: Path, key: str, provenance: str, as_json: bool) -> None:
    """Sign all that is in SIF, and write its new checksum beside it.

    gpg signs; its agent asks for the passphrase. `toolkit image verify` and `apptainer verify` check it.

    \b
    Examples:
      toolkit image sign my.sif --key me@example.org
    """
    extra = (full_object(sif),) if provenance == "full" else ()
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        made = sign(sif, key, tell, extra=extra)
    if as_json:
        say_json(made, indent=True)
        return
    say(f"{made.path}  signed by {made.user} ({made.fingerprint})  sha256:{made.sha256}")
