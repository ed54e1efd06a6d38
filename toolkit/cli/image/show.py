"""``toolkit image show``: what a recipe asks for."""

import click
import msgspec

from toolkit.cli.image.common import JSON, print_json
from toolkit.image import emit
from toolkit.image.recipe import load


@click.command("show")
@click.argument("recipe")
@JSON
def command(recipe: str, as_json: bool) -> None:
    """Show what RECIPE asks for."""
    named = load(recipe)
    fields = msgspec.to_builtins(named.recipe)
    if as_json:
        print_json(
            {
                "schema": "toolkit.shown/1",
                "name": named.name,
                "tag": named.tag,
                "source": emit.source_hash(named),
                "recipe": fields,
            }
        )
        return
    click.echo(f"{named.name}: {named.recipe.title}")
    for name, value in fields.items():
        if value and name not in {"schema", "title"}:
            click.echo(f"  {name:<11} {_in_words(value)}")


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(_in_words(v) for v in value.values())
    return " + ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
