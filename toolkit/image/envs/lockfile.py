"""Read and write the lock of an environment: its packages and its base image."""

from pathlib import Path

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, Damaged
from toolkit.files import open_given
from toolkit.image.files.bounded import Budget
from toolkit.image.files.sif.squash import SquashTree
from toolkit.image.files.tree import FileTree

LOCK = "toolkit-env.json"
"""The name of the lock in the root folder of an environment file."""
_MOST = 8 << 20
_MAGIC = b"hsqs"


class EnvBase(msgspec.Struct, frozen=True, kw_only=True):
    """The image for which toolkit made an environment.

    ``command`` is the path of the image's Python, and ``sites`` are the package folders of this Python.
    ``has`` are all Python packages of the image (name → version).
    """

    name: str
    digest: str
    architecture: str
    glibc: str
    python: str
    command: str
    sites: tuple[str, ...]
    has: dict[str, str]


class EnvPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package of an environment: its wheel, and the SHA-256 of the wheel.

    If toolkit built the wheel, ``built`` is true and ``sha256`` is the hash of the source distribution.
    ``via`` are the packages that need this package.
    """

    name: str
    version: str
    file: str
    sha256: str
    built: bool = False
    via: tuple[str, ...] = ()


class EnvLock(msgspec.Struct, frozen=True, kw_only=True):
    """The lock of an environment, which lists everything that determines the contents of the environment.

    ``requirements`` and ``constraints`` are lines that the user gave, and ``options`` are options for uv.
    ``replaced`` are packages of the image that the environment may hide with another version. ``outside`` are
    folders with code of the user's own projects; the environment does not contain this code, so jobs read it
    from these folders. ``left`` maps each omitted requirement to the reason. ``scripts`` are the names of the
    command-line programs.
    """

    schema: str = "toolkit.env/1"
    base: EnvBase
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    left: dict[str, str] = {}
    packages: tuple[EnvPackage, ...] = ()
    compiled: str = ""
    """The minor release of the Python that compiled the modules; empty if the modules are not compiled."""
    scripts: tuple[str, ...] = ()

    @property
    def site(self) -> str:
        """The package folder inside the environment."""
        return site_of(self.base.python)

    def version(self, name: str) -> str:
        """Return the version of a package in the environment; empty if the environment lacks the package."""
        return next((package.version for package in self.packages if package.name == name), "")


def site_of(python: str) -> str:
    """Return the package folder below the environment's mount point, for example
    ``/lib/python3.11/site-packages``.
    """
    return f"/lib/python{'.'.join(python.split('.')[:2])}/site-packages"


def lock_file(env: Path) -> Path:
    """Return the path of the copy of the lock that toolkit writes beside an environment file."""
    return env.with_name(f"{env.name}.lock.json")


def encode_lock(lock: EnvLock) -> bytes:
    """Return a lock as JSON."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=2) + b"\n"


def is_env(path: Path) -> bool:
    """Return whether a file is an environment and not an image."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return False
            return SquashTree(file, 0, str(path)).kind(f"/{LOCK}") == "file"
    except (OSError, Damaged, BadInput):
        return False


def read_env(path: Path, label: str = "") -> EnvLock:
    """Return the lock of an environment file.

    Args:
        path: the environment file.
        label: the command-line option with which the user gave the file, such as ``--env-image``; error
            messages begin with this option.

    Raises:
        BadInput: if the path is not an environment file.
        Damaged: if the environment file is damaged or truncated.
    """
    with open_given(path, label=label) as file:
        named = f"{label} {path}".lstrip()
        if file.read(len(_MAGIC)) != _MAGIC:
            raise BadInput(
                f"{named}: not an environment",
                fix="make an environment: `toolkit env create -f FILE --over IMAGE`",
            )
        return lock_in(SquashTree(file, 0, named, Budget(named)), named)


def lock_in(tree: FileTree, name: str) -> EnvLock:
    """Return the lock in ``tree``, the files of an environment; error messages begin with ``name``.

    Raises:
        BadInput: if the lock is missing or invalid.
    """
    if tree.kind(f"/{LOCK}") != "file":
        raise BadInput(
            f"{name}: this squashfs file is not an environment: it does not contain {LOCK}",
            fix="make an environment: `toolkit env create -f FILE --over IMAGE`",
        )
    try:
        return msgspec.json.decode(tree.content(f"/{LOCK}", _MOST), type=EnvLock)
    except DECODE_ERRORS as error:
        raise BadInput(
            f"{name}: the file {LOCK} in the environment cannot be read: {error}",
            fix="create the environment again",
        ) from error
