"""``toolkit image show``: what a recipe asks for."""

import click
import msgspec

from toolkit.cli.image.common import JSON, print_json
from toolkit.image.recipe import load
from toolkit.image.solved import solved


@click.command("show")
@click.argument("recipe")
@JSON
def command(recipe: str, as_json: bool) -> None:
    """Show what RECIPE asks for."""
    named = load(recipe)
    asked = named.recipe
    fields = msgspec.to_builtins(named.recipe)
    solution = solved(named)
    if as_json:
        print_json(
            {
                "schema": "toolkit.shown/1",
                "name": named.name,
                "tag": named.tag,
                "recipe": fields,
                "solution": msgspec.to_builtins(solution),
            }
        )
        return
    click.echo(f"{named.name}: {asked.title}")
    for chosen in solution.chosen:
        wish = asked.base if chosen.component == "base" else asked.want.get(chosen.component, "")
        version = (
            f"{chosen.version}, {' + '.join(asked.operations)}"
            if chosen.component == "horovod"
            else chosen.version
        )
        click.echo(f"  {chosen.component:<11} {wish:<11} {version}".rstrip())
    for field in ("architecture", "packages", "unbuildable"):
        if value := getattr(asked, field):
            click.echo(f"  {field:<11} {value if isinstance(value, str) else ' '.join(value)}")
