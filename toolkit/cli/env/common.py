"""Options and functions that the commands of ``toolkit env`` share."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.errors import BadInput
from toolkit.image.envs.create import EnvMade, create
from toolkit.image.envs.interpreter import ImagePython
from toolkit.image.envs.lockfile import EnvLock
from toolkit.image.envs.requirements import EnvRequirements
from toolkit.job.request.locations import find_image
from toolkit.report.progress import Progress
from toolkit.units import format_size

_FILE = click.Path(path_type=Path)
ENV = click.argument("env", metavar="ENV", type=_FILE)
OVER = click.option(
    "--over", metavar="IMAGE", help="Image for the environment  [default: the image for which ENV was built]"
)
REPLACE = click.option(
    "--replace", multiple=True, metavar="NAME", help="Replace a package of the image with another version"
)
LINKS = click.option(
    "--find-links",
    "links",
    multiple=True,
    metavar="DIR",
    help="Folder with wheels, searched in addition to the package index",
)

__all__ = [
    "ENV",
    "LINKS",
    "OVER",
    "REPLACE",
    "EnvMade",
    "ImagePython",
    "image_of",
    "make_again",
    "names_of",
    "print_made",
]


def names_of(given: tuple[str, ...]) -> frozenset[str]:
    """Return package names in the normalised form of PEP 503 (lower case, with ``-`` as the separator)."""
    from packaging.utils import canonicalize_name

    return frozenset(map(str, map(canonicalize_name, given)))


def with_links(wanted: EnvRequirements, links: tuple[str, ...]) -> EnvRequirements:
    """Return the requirements with the folders of ``--find-links``, in which uv searches for wheels.

    Raises:
        BadInput: if a value of ``--find-links`` is not a folder.
    """
    for link in links:
        folder = Path(link).expanduser()
        if not folder.is_dir():
            raise BadInput(f"--find-links {link}: not a folder")
        wanted = wanted.join(EnvRequirements(options=("--find-links", str(folder.resolve()))))
    return wanted


def image_of(env: Path, lock: EnvLock, over: str | None) -> Path:
    """Return the image of an environment: the image that ``--over`` names, or the image in the lock.

    If ``over`` is ``None``, the function searches for the file name that the lock records. It searches in the
    environment's folder, the current folder, ``build/images`` and ``images``.

    Raises:
        BadInput: if toolkit finds no file with the image's name.
    """
    if over:
        return find_image(over)
    for folder in (env.parent, Path(), Path("build/images"), Path("images")):
        if (found := folder / lock.base.name).is_file():
            return found.resolve()
    raise BadInput(
        f"{env}: toolkit cannot find {lock.base.name}, the image of this environment",
        fix="give the path of the image: `--over IMAGE`",
    )


def make_again(
    ctx: click.Context,
    env: Path,
    lock: EnvLock,
    wanted: EnvRequirements,
    over: str | None,
    more: frozenset[str],
) -> EnvMade:
    """Build an environment again with changed requirements, and return the result. Packages keep the versions
    in the lock if possible.

    Args:
        ctx: click's context.
        env: the environment file.
        lock: the lock in the environment file.
        wanted: the changed requirements.
        over: the value of ``--over``, or ``None`` for the image in the lock.
        more: further packages of the image that the environment may replace with another version.
    """
    image = image_of(env, lock, over)
    replaced = frozenset(lock.replaced) | more
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        return create(wanted, image, env, tell, replaced=replaced, before=lock)


def requirements_of(lock: EnvLock) -> EnvRequirements:
    """Return the requirements from which an environment was built, as its lock records them."""
    return EnvRequirements(
        requirements=lock.requirements,
        constraints=lock.constraints,
        options=lock.options,
        outside=lock.outside,
        left=lock.left,
    )


def print_made(made: EnvMade, *, as_json: bool, changed: bool = False) -> None:
    """Print the path, size, digest and packages of a new environment. If ``changed`` is true, print only the
    packages that changed.
    """
    if as_json:
        say_json(made, indent=True)
        return
    say(f"{made.path}  {format_size(made.bytes)}  sha256:{made.sha256}")
    shown = made.changed if changed else made.packages
    say(f"  {'changed' if changed else 'packages'}: {', '.join(shown) or 'none'}")
    for one, why in made.left.items():
        say(f"  left out: {one}: {why}", err=True)
    for folder in made.outside:
        say(f"  not copied: {folder}; jobs read this folder directly")
    if made.packages and not made.compiled:
        say(
            "  no bytecode, so imports are slower: this machine does not have the image's Python release and "
            "cannot start the image",
            err=True,
        )
