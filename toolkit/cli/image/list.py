"""``toolkit image list``: list the recipes with their versions."""

import click

from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.options.outputs import json_option
from toolkit.data import find_override
from toolkit.errors import ToolkitError
from toolkit.image.locks.recipe import load, names
from toolkit.image.locks.solve_recipe import solve_recipe
from toolkit.knowledge.stacks import stacks
from toolkit.model.recipe import MPIS

_TITLES = ("name", "tensorflow", "horovod", "mpi", "base", "title", "error", "want", "overrides")

_MINE = " (your own, replaces the shipped recipe)"


@click.command("list")
@json_option()
def command(as_json: bool) -> None:
    """List the recipes, with the versions that toolkit chooses for each recipe."""
    rows = [(*_row(name), _overrides(name)) for name in names()]
    if as_json:
        listed = [dict(zip(_TITLES, row, strict=True)) for row in rows]
        say_json({"schema": "toolkit.recipes/1", "recipes": listed}, indent=True)
        return
    from toolkit.cli.frame.styles import width_of_terminal
    from toolkit.report.table import table

    shown = [(*map(str, row[:5]), f"{row[6] or row[5]}{_MINE if row[8] else ''}") for row in rows]
    say_text(table(("recipe", *_TITLES[1:6]), shown, width_of_terminal()))


def _overrides(name: str) -> str:
    """Return the path of the user's recipe that replaces a shipped recipe, or an empty string."""
    return str(find_override("recipes", f"{name}.toml") or "")


def _row(name: str) -> tuple[object, ...]:
    """Return the row of one recipe in the list. If toolkit cannot read or solve the recipe, the row shows the
    error.
    """
    try:
        named = load(name, stacks())
    except ToolkitError as error:
        return name, "", "", "", "", "", error.message, {}
    recipe = named.recipe
    try:
        versions = solve_recipe(named).versions
    except ToolkitError as error:
        return name, "", "", "", "", recipe.title, error.message, recipe.want
    mpi = next((component for component in MPIS if component in versions), "")
    return (
        name,
        versions.get("tensorflow", "-"),
        versions.get("horovod", "-"),
        f"{mpi} {versions[mpi]}" if mpi else "-",
        versions["base"],
        f"{recipe.title}{' (not built by toolkit)' if recipe.unbuildable else ''}",
        "",
        recipe.want,
    )
