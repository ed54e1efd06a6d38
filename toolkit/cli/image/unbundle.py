"""``toolkit image unbundle``: put what a bundle holds in its places."""

from pathlib import Path

import click

from toolkit.cli.image.common import JSON
from toolkit.cli.say import say, say_json
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
        say_json(done, indent=True)
        return
    own = config_dir() / "recipes"
    say(f"{done.files} files are in place, {len(done.images)} images are in the engine")
    for name in done.recipes:
        say(f"  recipe: {name}")
    for name in done.kept:
        say(f"  kept: your own {name} in {own}, which differs from the bundle's", err=True)
        say(f"  fix: to take the bundle's, move yours away, then: toolkit image unbundle {source}", err=True)
    if done.waiting:
        say(f"  not loaded: {', '.join(done.waiting)}: {why}", err=True)
        say(f"  fix: start an engine, then: toolkit image unbundle {source}", err=True)
