"""``toolkit image sif``: from an image in the Docker engine to one SIF file."""

from pathlib import Path

import click

from toolkit.cli.image.common import JSON, print_json
from toolkit.image.packing import DEFAULT, PACKINGS, packing
from toolkit.image.recipe import load
from toolkit.image.sif import convert
from toolkit.report.progress import Progress
from toolkit.run.engine import connect


@click.command("sif")
@click.argument("recipe")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write (RECIPE.sif)")
@click.option(
    "--for",
    "purpose",
    type=click.Choice([known.name for known in PACKINGS]),
    default=DEFAULT.name,
    show_default=True,
    help="What to pack it for: " + "; ".join(f"{known.name}, {known.purpose}" for known in PACKINGS),
)
@click.option("--fresh", is_flag=True, help="Convert although the file is from this image already")
@JSON
@click.pass_context
def command(
    ctx: click.Context, recipe: str, output: Path | None, purpose: str, fresh: bool, as_json: bool
) -> None:
    """Turn the image of RECIPE into one SIF file, and write its checksum beside it."""
    named = load(recipe)
    client = connect()
    target = output or Path(f"{named.name}.sif")
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        made = convert(client, named.tag, target, tell, packing=packing(purpose), fresh=fresh)
    if as_json:
        print_json(made)
        return
    click.echo(f"{made.path}  {made.bytes / 1e6:.0f} MB  sha256:{made.sha256}")
    if made.untried:
        click.echo(f"  not started here: {made.untried}", err=True)
