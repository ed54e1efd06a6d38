"""``toolkit image sif``: convert an image in the Docker engine into one SIF file."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput
from toolkit.image.files.reference import refer
from toolkit.image.locks.recipe import load
from toolkit.image.sifs.packing import DEFAULT, PACKINGS, packing
from toolkit.image.sifs.sif import convert
from toolkit.report.progress import Progress
from toolkit.run.docker.engine import connect
from toolkit.run.folders import check_file
from toolkit.units import format_size


@click.command("sif")
@click.argument("image", metavar="RECIPE|NAME:TAG")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write  [default: NAME.sif]")
@click.option(
    "--for",
    "purpose",
    type=click.Choice([known.name for known in PACKINGS]),
    default=DEFAULT.name,
    show_default=True,
    help="What the compression optimises. "
    + "; ".join(f"{known.name}: {known.purpose}" for known in PACKINGS),
)
@click.option("--fresh", is_flag=True, help="Convert the image even if the SIF file is up to date")
@json_option()
@click.pass_context
def command(
    ctx: click.Context, image: str, output: Path | None, purpose: str, fresh: bool, as_json: bool
) -> None:
    """Convert the image of RECIPE, or any image in the Docker engine, into a SIF file with a checksum file.

    \b
    Examples:
      toolkit image sif tf2.21-cpu -o build/images/tf2.21-cpu.sif
      toolkit image sif docker-daemon:some/image:latest
    """
    name, tag = image_name(image)
    target = output or Path(f"{name}.sif")
    check_file(target, "-o", "image.sif")  # check the path before toolkit connects to the engine
    client = connect()
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        made = convert(client, tag, target, tell, packing=packing(purpose), fresh=fresh)
    if as_json:
        say_json(made, indent=True)
        return
    say(f"{made.path}  {format_size(made.bytes)}  sha256:{made.sha256}")
    if made.untried:
        say(f"  toolkit could not start a test container from the SIF: {made.untried}", err=True)


def image_name(image: str) -> tuple[str, str]:
    """Return a name for the SIF file, and the name of the image in the Docker engine.

    Raises:
        BadInput: if ``image`` is neither a recipe nor the name of an image in the engine.
    """
    if ":" not in image or Path(image).exists():
        recipe = load(image)
        return recipe.name, recipe.tag
    found = refer(image)
    if found.transport != "docker-daemon":
        raise BadInput(
            f"{image}: not an image in the Docker engine",
            fix=f"convert the image with Apptainer: `apptainer build X.sif {image}`",
        )
    name = found.tag.partition("@")[0].removesuffix(":latest").rpartition("/")[2]
    return name.replace(":", "-"), found.tag
