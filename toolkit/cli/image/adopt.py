"""``toolkit image adopt``: describe an image that toolkit did not build, and optionally add trainers."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import msgspec

from toolkit.cli.frame.files import write_whole
from toolkit.cli.frame.say import say, say_json
from toolkit.cli.image.registry import access, registry_options
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput
from toolkit.files import require_own
from toolkit.image.builds.adopt import Adopted, adopt_image, recipe_like
from toolkit.image.files.sif.siffile import is_sif
from toolkit.image.inspect import open_image
from toolkit.model.facts import ImageFacts
from toolkit.model.progress import Tell
from toolkit.report.progress import Progress
from toolkit.report.toml import toml
from toolkit.run.folders import in_cache, make_writable, would_take
from toolkit.run.registry.name import is_registry_name, parse_name
from toolkit.run.registry.session import RegistryAccess

_ENGINE = "docker-daemon:"
_FACTS = "adopted.json"
_LAYER = "layer"
_MARK = "# Made by toolkit image adopt"
"""The text at the start of each recipe that ``toolkit image adopt`` writes. ``toolkit image adopt`` replaces
an existing recipe only if the recipe starts with this text.
"""
_JSON_MARK = '{\n "schema": "toolkit.adopted/'
_MARKS = {"error": "✘", "warning": "!", "info": "·"}


@click.command("adopt")
@click.argument("image")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder to write to  [default: NAME.adopted]"
)
@click.option(
    "--facts", type=click.Path(path_type=Path), help="Facts file of your cluster, from toolkit probe -o"
)
@click.option("--layer", is_flag=True, help="Build an image that adds toolkit's trainers to IMAGE")
@click.option(
    "--tag",
    metavar="NAME:TAG",
    default="",
    help="Name of the image that --layer builds  [default: toolkit/adopted-NAME:latest]",
)
@registry_options
@json_option()
@click.pass_context
def command(
    ctx: click.Context,
    /,
    image: str,
    output: Path | None,
    facts: Path | None,
    layer: bool,
    tag: str,
    ca: Path | None,
    plain_http: bool,
    platform: str,
    as_json: bool,
) -> None:
    """Describe an image that toolkit did not build, and list what the image lacks to run toolkit's jobs.

    IMAGE is docker://HOST/NAME:TAG or oras://... in a registry, docker-daemon:NAME:TAG in the Docker engine,
    a SIF, or any other image that toolkit image inspect reads. toolkit does not start the image.

    In the output folder, adopted.json lists all packages of the image. NAME.toml contains the versions of the
    main components, in the form of a recipe. The file's NAME is the last part of IMAGE, such as
    horovod-0-28-1. To get a recipe that toolkit can build, edit NAME.toml.

    \b
    Examples:
      toolkit image adopt docker://horovod/horovod:0.28.1 --facts facts.json
      toolkit image adopt docker-daemon:my/image:1 --layer
    """
    from toolkit.probe.probe import load

    host = load(facts) if facts else None
    name = short_name(image)
    folder = would_take(output or Path(f"{name}.adopted"), "-o")
    _require_own(folder, name, layer=layer)
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell, ExitStack() as stack:
        here = stack.enter_context(_local_image(image, access(ca, plain_http=plain_http), platform, tell))
        tell.step(f"Reading {image}")
        tree, seen = stack.enter_context(open_image(here, platform=platform, tell=tell))
        found = adopt_image(tree, seen, image, host)
        _write(found, name, make_writable(folder, "-o"))
        made = _build_layer(here, image, seen, tag, folder, tell) if layer else None
    if as_json:
        say_json({**msgspec.to_builtins(found), "folder": str(folder), "layered": made}, indent=True)
        return
    say(*description_lines(found))
    say(f"Wrote {folder / _FACTS}, {folder / f'{name}.toml'}")
    if made:
        say(f"{made['tag']}  {made['id']}")


def description_lines(adopted: Adopted) -> Iterator[str]:
    """Yield the lines that describe an adopted image on the terminal."""
    yield f"{adopted.image}  {adopted.digest or ''}".rstrip()
    yield f"  system      {adopted.distribution or 'unknown'}, {adopted.architecture or 'unknown'}"
    for name, version in adopted.want.items():
        yield f"  {name:<11} {version}"
    yield f"  packages    {len(adopted.packages)} in the package lists of the image"
    if adopted.place:
        how = (
            f"launch mode {adopted.chosen} is predicted to work"
            if adopted.chosen
            else "no launch mode is predicted to work"
        )
        yield f"  on {adopted.place}: {how}"
    for lack in adopted.lacks:
        modes = f" ({', '.join(lack.modes)})" if lack.modes else ""
        yield f"  {_MARKS[lack.severity]} {lack.id}{modes}: {lack.title}"
        yield f"      fix: {lack.fix}"


def short_name(image: str) -> str:
    """Return a short form of an image's name for files and tags: lower-case letters, digits, hyphens."""
    last = re.split(r"[/@]", image.rstrip("/"))
    base = next((part for part in reversed(last) if part and not part.startswith("sha256:")), "image")
    base = re.sub(r"\.(sif|tar|tar\.gz|tar\.zst)$", "", base.removeprefix(_ENGINE))
    return re.sub(r"[^a-z0-9]+", "-", base.lower()).strip("-")[:60] or "image"


@contextmanager
def _local_image(image: str, access: RegistryAccess, platform: str, tell: Tell) -> Iterator[str]:
    """Yield ``image``. If the image is in a registry, download a copy, yield the copy's path, and delete the
    copy after use.
    """
    if not is_registry_name(image):
        yield image
        return
    from toolkit.image.transfer.pull import pull

    with tempfile.TemporaryDirectory(prefix="adopt.", dir=in_cache()) as work:
        yield pull(parse_name(image), Path(work) / "image", access, tell, platform=platform).path


def _require_own(folder: Path, name: str, *, layer: bool) -> None:
    """Check the output files before ``toolkit image adopt`` reads the image.

    Raises:
        BadInput: if an output file exists that ``toolkit image adopt`` did not write; the error names the
            file.
    """
    fix = "give another folder with -o, or move the file to another folder"
    require_own(folder / _FACTS, _JSON_MARK, fix)
    require_own(folder / f"{name}.toml", _MARK, fix)
    if layer:
        from toolkit.image.builds.layering import require_folder

        require_folder(folder / _LAYER, fix)


def _write(adopted: Adopted, name: str, folder: Path) -> None:
    write_whole(folder / _FACTS, msgspec.json.format(msgspec.json.encode(adopted), indent=1) + b"\n")
    lines = [
        (
            f"{_MARK}. Remove this line, or the next run of the command replaces this file. toolkit builds "
            "no image from this file until you remove `unbuildable`."
        )
    ]
    lines += [f"# Contents of {adopted.image}:"]
    lines += [f"# {c}: {line}" for c, line in adopted.evidence.items()]
    shown = "\n".join("".join(c if c.isprintable() else " " for c in line)[:200] for line in lines)
    described = recipe_like(adopted, f"Contents of {adopted.image}"[:200])
    text = toml(described)  # type: ignore[arg-type] # values are texts, tuples and tables
    write_whole(folder / f"{name}.toml", f"{shown}\n{text}".encode())


def _build_layer(
    source: str, image: str, facts: ImageFacts, tag: str, folder: Path, tell: Tell
) -> dict[str, str]:
    """Add the trainers to the image in the Docker engine, and return the tag and id of the new image.

    ``source`` is the name of the image in the engine, or the path of an archive, which toolkit first loads
    into the engine. ``image`` is the name that the user gave. The value ``base`` of the result is the id of
    the original image.
    """
    from toolkit.image.builds.layering import layer, require_python
    from toolkit.run.docker.engine import connect
    from toolkit.run.docker.engine_images import load_archive

    require_python(facts, image)
    client = connect()
    path = Path(source)
    if source.startswith(_ENGINE) or not path.exists():
        below = source.removeprefix(_ENGINE)
    elif path.is_file() and not _is_sif(path):
        below = load_archive(client, path)
    else:
        raise BadInput(
            f"{image}: the Docker engine cannot build on a SIF or a folder",
            fix=(
                f"give the Docker image from which {image} was made: docker://HOST/NAME:TAG or "
                "docker-daemon:NAME:TAG"
            ),
        )
    made = layer(client, below, tag or f"toolkit/adopted-{short_name(image)}:latest", folder / _LAYER, tell)
    return {"tag": made.tag, "id": made.id, "base": made.base}


def _is_sif(path: Path) -> bool:
    with path.open("rb") as file:
        return is_sif(file.read(64))
