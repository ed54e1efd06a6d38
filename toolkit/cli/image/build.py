"""``toolkit image build``: from a recipe and its lock to an image in the Docker engine."""

import click

from toolkit.cli.image.common import ACCEPTED, JSON, print_json
from toolkit.image.build import Built, build
from toolkit.image.lock import fitting_lock, lock_path
from toolkit.image.locking import ensure_lock
from toolkit.image.recipe import load
from toolkit.report.progress import Progress
from toolkit.run.engine import connect


@click.command("build")
@click.argument("recipe")
@click.option("--fresh", is_flag=True, help="Compile and build although nothing has changed")
@ACCEPTED
@JSON
@click.pass_context
def command(ctx: click.Context, recipe: str, fresh: bool, accepted: tuple[str, ...], as_json: bool) -> None:
    """Build the image of RECIPE from its lock, try it, and tag it toolkit/RECIPE:latest.

    What the lock names is fetched and verified first; no step of the build has a network. A recipe without a
    lock is locked now. The scripts of packages run in containers of the engine, never on this machine.
    """
    named = load(recipe)
    if lock_path(recipe).is_file():
        fitting_lock(named, recipe, accepted)  # a wrong lock is refused before the engine is asked
    client = connect()
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        lock = ensure_lock(client, named, recipe, tell, accepted)
        built = build(client, named, lock, tell, fresh=fresh)
    _print_built(built, as_json=as_json)


def _print_built(built: Built, *, as_json: bool) -> None:
    if as_json:
        print_json(built)
        return
    click.echo(f"{built.tag}  {built.bytes / 1e6:.0f} MB  {built.id}")
    click.echo(f"  base: {built.base}")
    click.echo(f"  lock: sha256:{built.lock}")
