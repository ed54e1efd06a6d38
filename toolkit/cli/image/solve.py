"""``toolkit image solve``: show the versions that toolkit chooses for a recipe, and the reasons."""

from pathlib import Path

import click

from toolkit.cli.frame.files import write_whole
from toolkit.cli.frame.say import say, say_json
from toolkit.cli.frame.styles import width_of_stdout
from toolkit.cli.image.common import cluster_options
from toolkit.cli.options.outputs import json_option
from toolkit.engine.solver.solve import Conflict, solve
from toolkit.files import require_own
from toolkit.image.locks.recipe import load
from toolkit.image.locks.solve_recipe import pin_recipe, refusal
from toolkit.knowledge.stacks import stacks
from toolkit.model.facts import HostFacts
from toolkit.report.fix import recipe_fields
from toolkit.report.solution import lines
from toolkit.report.toml import toml

_MARK = "# Made by toolkit image solve"
"""The text at the start of each recipe that ``toolkit image solve`` writes. ``toolkit image solve`` replaces
an existing recipe only if the recipe starts with this text.
"""


@click.command("solve")
@click.argument("recipe")
@cluster_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a recipe with the chosen versions to FILE",
)
@json_option()
@click.pass_context
def command(
    ctx: click.Context, recipe: str, host: HostFacts | None, output: Path | None, as_json: bool
) -> None:
    """Show which versions toolkit chooses for RECIPE, and why. With --facts or --site, toolkit chooses
    versions that work on the given cluster.

    The exit status is 1 if no versions satisfy RECIPE. toolkit then shows which lines of RECIPE conflict. For
    each of these lines, toolkit also shows which versions it would choose without this line.

    \b
    Examples:
      toolkit image solve tf2.21-cpu
      toolkit probe --host login.my-centre.example -o facts.json
      toolkit image solve tf2.21-cpu --facts facts.json -o my-centre.toml
      toolkit image solve tf2.21-cpu --site my-centre
    """
    named = load(recipe, stacks())
    found = solve(named.recipe, named.name, stacks(), host)
    if as_json:
        say_json(found, indent=True)
    if isinstance(found, Conflict):
        if as_json:
            ctx.exit(1)
        raise refusal(found)
    if not as_json:
        say(*lines(named.recipe, found, width_of_stdout()))
    if output is not None:
        _write(output, toml(recipe_fields(pin_recipe(named.recipe, found))))
        say(f"Wrote {output}", err=True)


def _write(file: Path, text: str) -> None:
    """Write a recipe. Replace an existing file only if ``toolkit image solve`` wrote the file."""
    require_own(file, _MARK, "give another name with -o")
    write_whole(file, f"{_MARK}; Use: toolkit image build {file.name}\n{text}".encode())
