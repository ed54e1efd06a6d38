"""``toolkit image build``: from a recipe to an image in the Docker engine."""

import click

from toolkit.cli.image.common import JSON, print_json
from toolkit.image.build import Built, build
from toolkit.image.recipe import load
from toolkit.report.progress import Progress
from toolkit.run.engine import connect


@click.command("build")
@click.argument("recipe")
@click.option("--fresh", is_flag=True, help="Build although nothing has changed; finished steps are reused")
@click.option("--newer-base", is_flag=True, help="Ask the registry for the base image again")
@JSON
@click.pass_context
def command(ctx: click.Context, recipe: str, fresh: bool, newer_base: bool, as_json: bool) -> None:
    """Build the image of RECIPE, try it, and tag it toolkit/RECIPE:latest."""
    named = load(recipe)
    client = connect()
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        built = build(client, named, tell, fresh=fresh, newer_base=newer_base)
    _print_built(built, as_json=as_json)


def _print_built(built: Built, *, as_json: bool) -> None:
    if as_json:
        print_json(built)
        return
    click.echo(f"{built.tag}  {built.bytes / 1e6:.0f} MB  {built.id}")
    click.echo(f"  base: {built.base}")
