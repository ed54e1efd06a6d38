"""``toolkit image lock``: write a recipe's lock, the list of all files of the build with their hashes."""

from pathlib import Path

import click
import msgspec

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.image.common import cluster_options
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput
from toolkit.image.locks.lock import (
    LockChange,
    compare_locks,
    lock_path,
    lock_to_replace,
    own_path,
    save_lock,
    stale,
)
from toolkit.image.locks.locking import lock_of
from toolkit.image.locks.recipe import load
from toolkit.knowledge.stacks import stacks
from toolkit.model.facts import HostFacts
from toolkit.model.lock import Lock, lock_sha256
from toolkit.report.progress import Progress
from toolkit.run.docker.engine import connect
from toolkit.units import format_size


@click.command("lock")
@click.argument("recipe")
@click.option("--upgrade", is_flag=True, help="Use the newest versions, and show the changes")
@click.option("--own", is_flag=True, help="Write the lock of a shipped recipe to your settings folder")
@cluster_options
@json_option()
@click.pass_context
def command(
    ctx: click.Context, recipe: str, upgrade: bool, own: bool, host: HostFacts | None, as_json: bool
) -> None:
    """Write RECIPE.lock.json, from which `toolkit image build` builds the image.

    The lock names every wheel, source archive and Debian package with its hash. If the lock matches its
    recipe, toolkit changes the lock only with --upgrade, --facts or --site.

    \b
    Examples:
      toolkit image lock tf2.21-cpu
      toolkit image lock tf2.21-cpu --upgrade
    """
    named = load(recipe, stacks())
    file = _own(recipe) if own else lock_path(recipe)
    old, unreadable = lock_to_replace(recipe)
    if unreadable:
        say(f"{unreadable}; writing a new lock", err=True)
    if old is not None and not upgrade and host is None and not stale(old, named.recipe):
        kept = file.is_file()
        if not kept:
            save_lock(old, file)
        _print_lock(old, file, (), as_json=as_json, kept=kept)
        return
    client = connect()
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        lock = lock_of(client, named, tell, host, newer_base=upgrade)
    save_lock(lock, file)
    _print_lock(lock, file, compare_locks(old, lock) if old else (), as_json=as_json, kept=False)


def _own(recipe: str) -> Path:
    """Return the path of the user's own lock for a shipped recipe.

    Raises:
        BadInput: if ``recipe`` is a path, because the lock of a recipe file is always in the file's folder.
    """
    if "/" in recipe or recipe.endswith(".toml"):
        raise BadInput(
            f"--own: {recipe} is a recipe file; its lock is always in the folder of the recipe file",
            fix="leave out `--own`, or give the name of a shipped recipe",
        )
    return own_path(recipe)


def _print_lock(
    lock: Lock, file: Path, changes: tuple[LockChange, ...], *, as_json: bool, kept: bool
) -> None:
    sets = (lock.base.packages, lock.run.debian, lock.run.wheels, lock.build.debian, lock.build.wheels)
    files = {f.sha256: f.size for group in (*sets, lock.build.sources) for f in group}
    if as_json:
        say_json(
            {
                "schema": "toolkit.locked/1",
                "recipe": lock.recipe,
                "path": str(file),
                "sha256": lock_sha256(lock),
                "kept": kept,
                "files": len(files),
                "bytes": sum(files.values()),
                "versions": lock.solution.versions,
                "moved": msgspec.to_builtins(changes),
            },
            indent=True,
        )
        return
    for change in changes:
        say(f"{change.where:<14} {change.name:<28} {change.old or '-'} -> {change.new or '-'}")
    state = "already matches its recipe" if kept else "written"
    say(f"{file}  {state}: {len(files)} files, {format_size(sum(files.values()))}")
