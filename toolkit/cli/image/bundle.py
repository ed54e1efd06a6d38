"""``toolkit image bundle``: write one archive with all files that a machine without a network needs."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.image.common import ACCEPT_OPTION
from toolkit.cli.options.outputs import json_option
from toolkit.image.locks.lock import fitting_lock
from toolkit.image.locks.recipe import load
from toolkit.image.startable import check_startable
from toolkit.image.transfer.bundle import bundle
from toolkit.report.progress import Progress
from toolkit.run.docker.engine import connect
from toolkit.run.folders import check_file
from toolkit.units import format_size


@click.command("bundle")
@click.argument("recipes", nargs=-1)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="File to write")
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="3.N",
    help="Python release on the target machine  [default: this machine's release]",
)
@click.option("--sif", "sifs", multiple=True, type=click.Path(path_type=Path), help="SIF file to add")
@click.option(
    "--builder/--no-builder", default=True, help="Add the Docker image in which toolkit makes SIF files"
)
@ACCEPT_OPTION
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    recipes: tuple[str, ...],
    output: Path,
    pythons: tuple[str, ...],
    sifs: tuple[Path, ...],
    builder: bool,
    accepted: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write one archive from which you can install toolkit and build RECIPES without a network.

    The archive contains wheels of toolkit and its dependencies, every file that the locks of RECIPES name,
    the base image, the image that makes SIFs, and a list of SHA-256 checksums. Without RECIPES, the archive
    contains only toolkit and the files of --sif, and this machine needs no Docker.

    The machine without a network needs Python, and Docker if you build images there. On that machine, run:

    \b
      tar xf BUNDLE.tar && sh install.sh

    \b
    Example:
      toolkit image bundle tf2.21-cpu -o toolkit.tar --python 3.11 --python 3.12
      toolkit image bundle --sif my.sif -o toolkit.tar
    """
    check_file(output, "-o", "toolkit.tar")
    for recipe in recipes:
        fitting_lock(load(recipe), recipe, accepted)  # check the lock before toolkit connects to the engine
    for sif in sifs:
        check_startable(sif, "--sif")
    client = connect() if recipes else None
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        made = bundle(
            client,
            recipes,
            output,
            tell,
            sifs=sifs,
            pythons=pythons,
            builder=builder,
            accepted_hosts=accepted,
        )
    if as_json:
        say_json(made, indent=True)
        return
    say(f"{made.path}  {format_size(made.bytes)}  {made.files} files  sha256:{made.sha256}")
