"""``toolkit image render``: print a Dockerfile or Singularity definition, or write a build folder."""

import shlex
from pathlib import Path

import click
import msgspec

from toolkit.cli.frame.say import say, say_exact, say_json
from toolkit.cli.image.common import ACCEPT_OPTION, VERIFY_KEY, say_lock_signature
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput
from toolkit.image.builds.emit import Making, definition, dockerfile
from toolkit.image.builds.identity import labels
from toolkit.image.builds.written import new_folder, write_folder
from toolkit.image.locks.fetch import fetch_files
from toolkit.image.locks.lock import files_of, fitting_lock
from toolkit.image.locks.outline import outline_recipe
from toolkit.image.locks.recipe import load
from toolkit.knowledge.stacks import stacks
from toolkit.report.progress import Progress
from toolkit.run.docker.bootstrap import SCRIPT

_JOBS = 2


@click.command("render")
@click.argument("recipe")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["docker", "singularity"]),
    default="docker",
    show_default=True,
    help="docker: a Dockerfile; singularity: a definition file for apptainer build",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write a folder with all files of the build"
)
@ACCEPT_OPTION
@VERIFY_KEY
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    recipe: str,
    kind: str,
    output: Path | None,
    accepted: tuple[str, ...],
    verify_key: Path | None,
    as_json: bool,
) -> None:
    """Print the Dockerfile or the Singularity definition of RECIPE, from the lock of RECIPE.

    With -o, the command writes a folder with every file of the build; a build from this folder needs no
    network. If the lock names no published base image, the folder contains the script make-base.sh, which
    makes the base image from Debian packages. Run make-base.sh as an ordinary user. In a container, root can
    run make-base.sh --in-container.

    \b
    Examples:
      toolkit image render tf2.21-cpu -o ctx
      sh ctx/make-base.sh && docker build ctx
      toolkit image render tf2.21-cpu --format singularity -o ctx
      sh ctx/make-base.sh && apptainer build my.sif ctx/Singularity.def
    """
    named = load(recipe)
    signature = msgspec.to_builtins(say_lock_signature(recipe, verify_key))
    unbuildable = named.recipe.unbuildable
    if output is not None and unbuildable:
        raise BadInput(
            f"-o: toolkit cannot build {named.name}: {unbuildable}",
            fix="leave out `-o`; toolkit then prints the Dockerfile or the definition",
        )
    lock = outline_recipe(load(recipe, stacks())) if unbuildable else fitting_lock(named, recipe, accepted)
    making = Making(lock=lock, base=lock.base.published, unbuildable=unbuildable)
    singularity = kind == "singularity"
    said = {
        "schema": "toolkit.rendered/1",
        "recipe": named.name,
        "format": kind,
        "lock_signature": signature,
    }
    if output is None:
        text = (
            definition(making, labels(making), context="", jobs=_JOBS) if singularity else dockerfile(making)
        )
        if as_json:
            say_json({**said, "text": text}, indent=True)
        else:
            say_exact(text)
        return
    new_folder(output)  # check the folder before toolkit downloads hundreds of megabytes
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        files = fetch_files(files_of(making.lock), tell, recipe=recipe)
        target = write_folder(making, files, output, singularity=singularity, jobs=_JOBS, tell=tell)
    if as_json:
        say_json({**said, "path": str(target)}, indent=True)
        return
    say(target)
    if not lock.base.published and not ctx.obj["quiet"]:
        say(
            f"next: sh {shlex.quote(str(output / SCRIPT))}  # makes base.tar from the packages of the lock",
            err=True,
        )
