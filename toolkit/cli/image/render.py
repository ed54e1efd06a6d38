"""``toolkit image render``: the text that an image is built from."""

import click

from toolkit.image import emit
from toolkit.image.recipe import load


@click.command("render")
@click.argument("recipe")
def command(recipe: str) -> None:
    """Print the Dockerfile of RECIPE."""
    named = load(recipe)
    click.echo(emit.dockerfile(named, emit.published(named)), nl=False)
