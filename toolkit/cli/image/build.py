"""``toolkit image build``: build an image in the Docker engine from a recipe and its lock."""

from pathlib import Path

import click
import msgspec

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.image.common import ACCEPT_OPTION, VERIFY_KEY, say_lock_signature
from toolkit.cli.options.outputs import json_option
from toolkit.image.builds.build import Built, build
from toolkit.image.locks.lock import fitting_lock, lock_path
from toolkit.image.locks.locking import ensure_lock
from toolkit.image.locks.recipe import load
from toolkit.knowledge.stacks import stacks
from toolkit.model.signature import FileSignature
from toolkit.report.progress import Progress
from toolkit.run.docker.engine import connect
from toolkit.units import format_size


@click.command("build")
@click.argument("recipe")
@click.option("--fresh", is_flag=True, help="Compile and build again even if the image is up to date")
@ACCEPT_OPTION
@VERIFY_KEY
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    recipe: str,
    fresh: bool,
    accepted: tuple[str, ...],
    verify_key: Path | None,
    as_json: bool,
) -> None:
    """Build the image of RECIPE from the recipe's lock, test the image, and tag it toolkit/RECIPE:latest.

    First, toolkit downloads and verifies the files that the lock lists. The build itself has no network. If
    the recipe has no lock, toolkit writes a lock. If the lock did not come with toolkit, toolkit shows who
    signed the lock. The installation scripts of packages run only in containers.
    """
    locked = lock_path(recipe).is_file()
    named = load(recipe, None if locked else stacks())
    if locked:
        fitting_lock(named, recipe, accepted)  # check the lock before toolkit connects to the engine
    signature = say_lock_signature(recipe, verify_key)
    client = connect()
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        lock = ensure_lock(client, named, recipe, tell, accepted)
        built = build(client, named, lock, tell, fresh=fresh)
    _print_built(built, signature, as_json=as_json)


def _print_built(result: Built, signature: FileSignature | None, *, as_json: bool) -> None:
    if as_json:
        said = {**msgspec.to_builtins(result), "lock_signature": msgspec.to_builtins(signature)}
        say_json(said, indent=True)
        return
    say(f"{result.tag}  {format_size(result.bytes)}  {result.id}")
    say(f"  base: {result.base}")
    say(f"  lock: sha256:{result.lock}")
