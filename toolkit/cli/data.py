"""``toolkit data``: download and verify data sets."""

from pathlib import Path

import click

from toolkit.cli.frame.lazy import NearGroup
from toolkit.cli.frame.say import say, say_json, say_text
from toolkit.cli.options.outputs import json_option
from toolkit.report.progress import Progress


@click.group("data", cls=NearGroup)
def command() -> None:
    """Download and verify data sets."""


@command.command("get", short_help="Download a data set and verify it")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for the files",
)
@json_option()
@click.pass_context
def get(ctx: click.Context, name: str, output: Path | None, as_json: bool) -> None:
    """Download the data set NAME into a folder, and verify the SHA-256 of each file.

    The default folder is data/NAME in toolkit's cache folder. The cache folder is ~/.cache/toolkit, unless
    TOOLKIT_CACHE_DIR or XDG_CACHE_HOME is set. toolkit downloads only files that are missing in the data
    set's folder or have a wrong SHA-256. Trainings read the downloaded files, and never download data.

    Example: toolkit data get mnist
    """

    from toolkit.data import cache_dir
    from toolkit.dataset import catalogue, fetch
    from toolkit.run.local import LocalRunner

    dataset = catalogue.load(name)
    folder = (output or cache_dir() / "data" / dataset.name).absolute()
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or as_json) as tell:
        done = fetch.get(dataset, folder, LocalRunner(), tell)
    if as_json:
        told = {
            "schema": "toolkit.data/1",
            "name": dataset.name,
            "folder": str(folder),
            "fetched": done.fetched,
            "kept": done.existing,
        }
        say_json(told)
        return
    fetched = f"{len(done.fetched)} downloaded" if done.fetched else "none downloaded"
    say(f"{folder}: {len(dataset.files)} files of {dataset.name} verified, {fetched}")


@command.command("list", short_help="List the data sets")
@json_option()
def list_datasets(as_json: bool) -> None:
    """List the data sets that toolkit can download.

    Example: toolkit data list
    """
    import msgspec

    from toolkit.cli.frame.styles import width_of_terminal
    from toolkit.dataset import catalogue
    from toolkit.report.table import table

    found = catalogue.all_datasets()
    if as_json:
        listed = [msgspec.to_builtins(dataset) for dataset in found]
        say_json({"schema": "toolkit.datasets/1", "datasets": listed})
        return
    rows = [(one.name, f"{one.size / 1e6:.0f}", len(one.files), one.title) for one in found]
    say_text(table(("name", "MB", "files", "contents"), rows, width_of_terminal()))
