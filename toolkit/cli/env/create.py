"""``toolkit env create``: write an environment file from a requirements file and an image."""

from pathlib import Path

import click

from toolkit.cli.env.common import LINKS, REPLACE, names_of, print_made, with_links
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput
from toolkit.image.envs.create import check_target, create
from toolkit.image.envs.requirements import EnvRequirements, read_requirements
from toolkit.job.request.locations import find_image
from toolkit.report.progress import Progress

_FILE = click.Path(path_type=Path)


@click.command("create")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="File that lists the packages to install",
)
@click.option(
    "--over",
    required=True,
    metavar="IMAGE",
    help="Image for the environment: a SIF file, or the name of a recipe",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=_FILE,
    metavar="ENV",
    help="Environment file to write, such as my.env",
)
@REPLACE
@LINKS
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[Path, ...],
    over: str,
    output: Path,
    replace: tuple[str, ...],
    links: tuple[str, ...],
    as_json: bool,
) -> None:
    """Choose package versions that work with IMAGE, and write the packages into one file, ENV.

    FILE is a requirements file, pyproject.toml, uv.lock or environment.yml. The environment uses the packages
    that IMAGE already has, and contains no copies of them. Packages that other packages are compiled against
    (numpy, torch, TensorFlow, mpi4py, …) keep the version that IMAGE has, unless --replace names them. For a
    project that FILE names with -e DIR, the environment contains the dependencies but not the project's code.

    \b
    Examples:
      toolkit env create -f requirements.txt --over centre.sif -o my.env
      toolkit launch --image centre.sif --env-image my.env -- python train.py
    """
    if not files:
        raise BadInput(
            "-f: missing; toolkit needs a file that lists the packages",
            fix="give the file: `toolkit env create -f requirements.txt …`",
        )
    image = find_image(over)
    check_target(output)
    wanted = with_links(EnvRequirements(), links)
    for file in files:
        wanted = wanted.join(read_requirements(file))
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        made = create(wanted, image, output, tell, replaceable=names_of(replace))
    print_made(made, as_json=as_json)
