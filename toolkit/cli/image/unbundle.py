"""``toolkit image unbundle``: put what a bundle holds in its places."""

from pathlib import Path

import click

from toolkit.cli.image.common import JSON, print_json
from toolkit.data import config_dir
from toolkit.errors import Missing
from toolkit.image.unbundle import unbundle
from toolkit.report.progress import Progress
from toolkit.run.engine import connect


@click.command("unbundle")
@click.argument("source", type=click.Path(path_type=Path))
@JSON
@click.pass_context
def command(ctx: click.Context, source: Path, as_json: bool) -> None:
    """Put what is in SOURCE in its places: a bundle, or the folder that it was unpacked into.

    Every file is checked. install.sh, which comes in the bundle, does this too. Where no Docker engine
    answers, the images wait: run it again once one does.
    """
    try:
        client = connect()
    except Missing as error:
        client, why = None, error.message
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        done = unbundle(source, client, tell)
    if as_json:
        print_json(done)
        return
    own = config_dir() / "recipes"
    click.echo(f"{done.files} files are in place, {len(done.images)} images are in the engine")
    for name in done.recipes:
        click.echo(f"  recipe: {name}")
    for name in done.kept:
        click.echo(f"  kept: your own {name} in {own}, which differs from the bundle's", err=True)
        click.echo(
            f"  fix: to take the bundle's, move yours away, then: toolkit image unbundle {source}", err=True
        )
    if done.waiting:
        click.echo(f"  not loaded: {', '.join(done.waiting)}: {why}", err=True)
        click.echo(f"  fix: start an engine, then: toolkit image unbundle {source}", err=True)
