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


def names_of(names: tuple[str, ...]) -> frozenset[str]:
    """Return package names in the normalised form of PEP 503 (lower case, with ``-`` as the separator)."""
    from packaging.utils import canonicalize_name

    return frozenset(map(str, map(canonicalize_name, names)))


def with_links(requirements: EnvRequirements, links: tuple[str, ...]) -> EnvRequirements:
    """Return the requirements with the folders of ``--find-links``, in which uv searches for wheels.

    Raises:
        BadInput: if a value of ``--find-links`` is not a folder.
    """
    for link in links:
        folder = Path(link).expanduser()
        if not folder.is_dir():
            raise BadInput(f"--find-links {link}: not a folder")
        requirements = requirements.join(EnvRequirements(options=("--find-links", str(folder.resolve()))))
    return requirements


def image_of(env: Path, lock: EnvLock, image: str | None) -> Path:
    """Return the path of an environment's image: the image that ``--over`` names, or the image that the lock
    names.

    ``image`` is the value of ``--over``. If ``image`` is ``None``, the function searches for the file name
    that the lock records. The function searches in the environment's folder, the current folder,
    ``build/images`` and ``images``.

    Raises:
        BadInput: if toolkit finds no file with the image's name.
    """
    if image:
        return find_image(image)
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
    requirements: EnvRequirements,
    image: str | None,
    replaceable_names: frozenset[str],
) -> EnvMade:
    """Build an environment again with changed requirements, and return the result. If possible, packages keep
    the versions in the lock.

    Args:
        ctx: click's context.
        env: the environment file.
        lock: the lock in the environment file.
        requirements: the changed requirements.
        image: the value of ``--over``, or ``None`` for the image that the lock names.
        replaceable_names: names of packages in the image that the environment may replace with another
            version. The environment may also replace the packages that the lock lists as replaced.
    """
    image_path = image_of(env, lock, image)
    replaced = frozenset(lock.replaced) | replaceable_names
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        return create(requirements, image_path, env, tell, replaceable=replaced, earlier_lock=lock)


def requirements_of(lock: EnvLock) -> EnvRequirements:
    """Return the requirements from which an environment was built, as its lock records them."""
    return EnvRequirements(
        requirements=lock.requirements,
        constraints=lock.constraints,
        options=lock.options,
        code_folders=lock.outside,
        omissions=lock.left,
    )


def print_made(env_made: EnvMade, *, as_json: bool, changed: bool = False) -> None:
    """Print the path, size, digest and packages of a new environment.

    If ``changed`` is true, list only the packages that changed.
    """
    if as_json:
        say_json(env_made, indent=True)
        return
    say(f"{env_made.path}  {format_size(env_made.bytes)}  sha256:{env_made.sha256}")
    shown = env_made.changed if changed else env_made.packages
    say(f"  {'changed' if changed else 'packages'}: {', '.join(shown) or 'none'}")
    for one, why in env_made.left.items():
        say(f"  left out: {one}: {why}", err=True)
    for folder in env_made.outside:
        say(f"  not copied into the environment: {folder}; jobs read this folder directly")
    if env_made.packages and not env_made.compiled:
        say(
            "  no bytecode, so imports are slower: this machine does not have the image's Python release and "
            "cannot start the image",
            err=True,
        )
