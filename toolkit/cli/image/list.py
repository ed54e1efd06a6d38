"""``toolkit image list``: the recipes and what is in them."""

import click

from toolkit.cli.image.common import JSON, print_json
from toolkit.errors import ToolkitError
from toolkit.image.recipe import load, names
from toolkit.image.solved import solved
from toolkit.model.recipe import MPIS


@click.command("list")
@JSON
def command(as_json: bool) -> None:
    """List the recipes and what is in them."""
    rows = [(name, *_listed(name)) for name in names()]
    if as_json:
        titles = ("name", "tensorflow", "horovod", "mpi", "title", "error")
        print_json(
            {"schema": "toolkit.recipes/1", "recipes": [dict(zip(titles, r, strict=True)) for r in rows]}
        )
        return
    from toolkit.report.table import table

    click.echo(
        table(("recipe", "tensorflow", "horovod", "mpi", "title"), [(*r[:4], r[5] or r[4]) for r in rows])
    )


def _listed(name: str) -> tuple[str, str, str, str, str]:
    """Return a row of the list; a recipe that cannot be read has its error in the last place."""
    try:
        named = load(name)
        versions = solved(named).versions
    except ToolkitError as error:
        return "", "", "", "", error.message
    mpi = next(name for name in MPIS if name in versions)
    return (
        versions.get("tensorflow", "-"),
        versions.get("horovod", "-"),
        f"{mpi} {versions[mpi]}",
        named.recipe.title,
        "",
    )
