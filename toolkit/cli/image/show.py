"""``toolkit image show``: show the requirements of a recipe, and the versions that toolkit chooses."""

import click
import msgspec

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.data import find_override
from toolkit.image.locks.lock import SUFFIX
from toolkit.image.locks.recipe import load
from toolkit.image.locks.solve_recipe import solve_recipe
from toolkit.knowledge.stacks import stacks
from toolkit.model.recipe import Recipe
from toolkit.model.solution import Solution


@click.command("show")
@click.argument("recipe")
@json_option()
def command(recipe: str, as_json: bool) -> None:
    """Show the requirements of RECIPE and the versions that toolkit chooses for RECIPE.

    `toolkit image solve` shows why toolkit chooses these versions.
    """
    named = load(recipe, stacks())
    solution = solve_recipe(named)
    files = (find_override("recipes", f"{recipe}{ending}") for ending in (".toml", SUFFIX))
    own = [file for file in files if file]
    if as_json:
        say_json(
            {
                "schema": "toolkit.shown/1",
                "name": named.name,
                "tag": named.tag,
                "overrides": [str(file) for file in own],
                "recipe": msgspec.to_builtins(named.recipe),
                "solution": msgspec.to_builtins(solution),
            },
            indent=True,
        )
        return
    say(f"{named.name}: {named.recipe.title}")
    say(*(f"  {file} replaces the shipped {file.name}" for file in own))
    say(*(f"  {line}" for line in _lines(named.recipe, solution)))


def _lines(recipe: Recipe, solution: Solution) -> list[str]:
    """Return one line for each component: its name, the recipe's requirement and the chosen version.

    Other lines show the architecture, further packages, and the reason why toolkit does not build the image.
    """
    wishes = {**recipe.want, "base": recipe.base}
    width = max(len(wish) for wish in wishes.values())
    lines = [f"architecture  {'':<{width}}  {solution.architecture}"]
    for chosen in solution.chosen:
        more = f", {' + '.join(recipe.operations)}" if chosen.component == "horovod" else ""
        wish = wishes.get(chosen.component, "")
        lines.append(f"{chosen.component:<12}  {wish:<{width}}  {chosen.version}{more}")
    if recipe.packages:
        lines.append(f"packages      {' '.join(recipe.packages)}")
    if recipe.unbuildable:
        lines.append(f"not built by toolkit: {recipe.unbuildable}")
    return lines
