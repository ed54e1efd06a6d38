"""``toolkit image``: recipes, images in the Docker engine, SIF files."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from toolkit.errors import ToolkitError
from toolkit.report.progress import Progress

if TYPE_CHECKING:
    from toolkit.image.build import Built
    from toolkit.image.recipe import Named

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON")


@click.group("image")
def command() -> None:
    """Build, convert and look into training images.

    RECIPE is a name that `toolkit image list` shows, or the path of a TOML file.
    """


@command.command("list")
@_JSON
def list_recipes(as_json: bool) -> None:
    """List the recipes and what is in them."""
    rows = [(name, *_listed(name)) for name in _recipe_names()]
    if as_json:
        titles = ("name", "tensorflow", "horovod", "mpi", "title", "error")
        _print_json(
            {"schema": "toolkit.recipes/1", "recipes": [dict(zip(titles, r, strict=True)) for r in rows]}
        )
        return
    from toolkit.report.table import table

    click.echo(
        table(("recipe", "tensorflow", "horovod", "mpi", "title"), [(*r[:4], r[5] or r[4]) for r in rows])
    )


@command.command("show")
@click.argument("recipe")
@_JSON
def show(recipe: str, as_json: bool) -> None:
    """Show what RECIPE asks for."""
    from toolkit.image import emit

    named = _load(recipe)
    fields = msgspec.to_builtins(named.recipe)
    if as_json:
        _print_json(
            {
                "schema": "toolkit.shown/1",
                "name": named.name,
                "tag": named.tag,
                "source": emit.source_hash(named),
                "recipe": fields,
            }
        )
        return
    click.echo(f"{named.name}: {named.recipe.title}")
    for name, value in fields.items():
        if value and name not in {"schema", "title"}:
            click.echo(f"  {name:<11} {_in_words(value)}")


@command.command("render")
@click.argument("recipe")
def render(recipe: str) -> None:
    """Print the Dockerfile of RECIPE."""
    from toolkit.image import emit

    named = _load(recipe)
    click.echo(emit.dockerfile(named, emit.published(named)), nl=False)


@command.command("build")
@click.argument("recipe")
@click.option("--fresh", is_flag=True, help="Build although nothing has changed; finished steps are reused")
@click.option("--newer-base", is_flag=True, help="Ask the registry for the base image again")
@_JSON
@click.pass_context
def build(ctx: click.Context, recipe: str, fresh: bool, newer_base: bool, as_json: bool) -> None:
    """Build the image of RECIPE, try it, and tag it toolkit/RECIPE:latest."""
    from toolkit.image.build import build as build_it
    from toolkit.run.engine import connect

    named = _load(recipe)
    client = connect()
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        built = build_it(client, named, tell, fresh=fresh, newer_base=newer_base)
    _print_built(built, as_json=as_json)


@command.command("sif")
@click.argument("recipe")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write (RECIPE.sif)")
@click.option("--fresh", is_flag=True, help="Convert although the file is from this image already")
@_JSON
@click.pass_context
def sif(ctx: click.Context, recipe: str, output: Path | None, fresh: bool, as_json: bool) -> None:
    """Turn the image of RECIPE into one SIF file, and write its checksum beside it."""
    from toolkit.image.sif import convert
    from toolkit.run.engine import connect

    named = _load(recipe)
    client = connect()
    target = output or Path(f"{named.name}.sif")
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        made = convert(client, named.tag, target, tell, fresh=fresh)
    if as_json:
        _print_json(made)
        return
    click.echo(f"{made.path}  {made.bytes / 1e6:.0f} MB  sha256:{made.sha256}")
    if made.untried:
        click.echo(f"  not started here: {made.untried}", err=True)


@command.command("inspect")
@click.argument("image")
@click.option("--platform", default="", help="Choose in an image for several: linux/arm64")
@_JSON
@click.pass_context
def inspect(ctx: click.Context, image: str, platform: str, as_json: bool) -> None:
    """Say what is in IMAGE without starting it.

    IMAGE is a SIF, a squashfs, a sandbox folder, a docker or OCI archive (also with gzip or zstd) or an OCI
    layout; or docker-archive:FILE, oci-archive:FILE[:NAME], oci:FOLDER[:NAME]; or an image of the Docker
    engine: docker-daemon:NAME:TAG, or NAME:TAG where there is no such file.

    A checksum beside it, IMAGE.sha256, is compared first. Without one, only damage in the parts that are
    read here is noticed.

    \b
    Examples:
      toolkit image inspect my.sif
      toolkit image inspect docker-daemon:my/image:latest --json
    """
    from toolkit.image.inspect import inspect as look_into
    from toolkit.report.inspected import lines

    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        facts = look_into(image, platform=platform, tell=tell)
    if as_json:
        _print_json(facts)
        return
    for line in lines(facts):
        click.echo(line)


def _load(recipe: str) -> "Named":
    from toolkit.image.recipe import load

    return load(recipe)


def _recipe_names() -> list[str]:
    from toolkit.image.recipe import names

    return names()


def _listed(name: str) -> tuple[str, str, str, str, str]:
    """Return a row of the list; a recipe that cannot be read has its error in the last place."""
    try:
        recipe = _load(name).recipe
    except ToolkitError as error:
        return "", "", "", "", error.message
    return (
        recipe.tensorflow.version if recipe.tensorflow else "-",
        recipe.horovod.version if recipe.horovod else "-",
        f"{recipe.mpi.implementation} {recipe.mpi.version}",
        recipe.title,
        "",
    )


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(_in_words(v) for v in value.values())
    return " + ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _print_built(built: "Built", *, as_json: bool) -> None:
    if as_json:
        _print_json(built)
        return
    click.echo(f"{built.tag}  {built.bytes / 1e6:.0f} MB  {built.id}")
    click.echo(f"  base: {built.base}")


def _print_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
