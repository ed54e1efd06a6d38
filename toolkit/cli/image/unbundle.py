"""``toolkit image unbundle``: install the contents of a bundle."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.image.common import VERIFY_KEY
from toolkit.cli.options.outputs import json_option
from toolkit.errors import Missing
from toolkit.image.transfer.unbundle import unbundle
from toolkit.report.progress import Progress
from toolkit.run.docker.engine import connect

if TYPE_CHECKING:
    from docker import DockerClient


@click.command("unbundle")
@click.argument("source", type=click.Path(path_type=Path))
@VERIFY_KEY
@click.option("--replace", is_flag=True, help="Let recipes of the bundle replace existing recipes")
@json_option()
@click.pass_context
def command(ctx: click.Context, source: Path, verify_key: Path | None, replace: bool, as_json: bool) -> None:
    """Install the contents of SOURCE: a bundle, or the folder of an unpacked bundle.

    toolkit compares every file with its hash before the installation. A recipe of the bundle replaces an
    existing recipe only with --replace. The bundle's script install.sh runs this command for you. If no
    Docker engine answers, toolkit skips the images. To load the images later, start Docker and run the
    command again.

    \b
    Examples:
      toolkit image unbundle toolkit.tar --verify-key centre.asc
    """
    why = ""

    def engine() -> "DockerClient | None":
        nonlocal why
        try:
            return connect()
        except Missing as error:
            why = error.message
            return None

    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        done = unbundle(source, engine, tell, keyring=verify_key, replace=replace)
    if as_json:
        say_json(done, indent=True)
        return
    say(f"{source}: {done.signature.description}")
    say(f"Installed {done.files} files; {len(done.images)} images are in the Docker engine")
    for name in done.recipes:
        say(f"  recipe: {name}")
    for name in done.replaced:
        say(f"  replaced: {name}; toolkit now uses the bundle's recipe")
    if done.waiting:
        say(f"  not loaded: {', '.join(done.waiting)}: {why}", err=True)
        say(f"  hint: start a Docker engine, then: toolkit image unbundle {source}", err=True)
