"""The lock in an environment file and beside it: its packages, and the image that it was made for."""

from pathlib import Path

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, Damaged
from toolkit.files import open_given
from toolkit.image.files.bounded import Budget
from toolkit.image.files.sif.squash import SquashTree
from toolkit.image.files.tree import FileTree

LOCK = "toolkit-env.json"
"""The lock inside the file, at its root."""
_MOST = 8 << 20
_MAGIC = b"hsqs"


class EnvBase(msgspec.Struct, frozen=True, kw_only=True):
    """The image that an environment was made for.

    ``command`` is the path of its Python, ``site`` the folders of its packages, ``has`` the packages that the
    environment was resolved against, by name.
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
    """A package of an environment: its wheel, and the SHA-256 of that file.

    ``built`` is the SHA-256 of the source distribution, if toolkit built the wheel here. ``via`` are the
    packages that need this package.
    """

    name: str
    version: str
    file: str
    sha256: str
    built: bool = False
    via: tuple[str, ...] = ()


class EnvLock(msgspec.Struct, frozen=True, kw_only=True):
    """The complete input of an environment.

    ``requirements`` are the user's lines, ``options`` options for the package index, ``replaced`` packages of
    the image that may be hidden. ``outside`` are folders of projects that stay outside; ``left`` are
    requirements that are not in the environment, with reasons.
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
    """The Python that compiled the modules; empty if they are not compiled."""
    scripts: tuple[str, ...] = ()

    @property
    def site(self) -> str:
        """Return the folder of its packages, in the file."""
        return site_of(self.base.python)

    def version(self, name: str) -> str:
        """Return the version of a package in the environment; empty without this package."""
        return next((one.version for one in self.packages if one.name == name), "")


def site_of(python: str) -> str:
    """Return the folder of packages below the mount, as in any prefix of Python."""
    return f"/lib/python{'.'.join(python.split('.')[:2])}/site-packages"


def lock_file(env: Path) -> Path:
    """Return the path of the lock's copy beside the file."""
    return env.with_name(f"{env.name}.lock.json")


def encode_lock(lock: EnvLock) -> bytes:
    """Return the text of a lock."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=2) + b"\n"


def is_env(path: Path) -> bool:
    """Return whether a file is an environment, and not an image."""
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
        path: the file.
        label: the option that names the file, for messages.

    Raises:
        BadInput: if the path is not an environment file.
        Damaged: if the file is damaged or cut short.
    """
    with open_given(path, label=label) as file:
        named = f"{label} {path}".lstrip()
        if file.read(len(_MAGIC)) != _MAGIC:
            raise BadInput(
                f"{named}: not an environment", fix="make one: `toolkit env create -f FILE --over IMAGE`"
            )
        return lock_in(SquashTree(file, 0, named, Budget(named)), named)


def lock_in(tree: FileTree, name: str) -> EnvLock:
    """Return the lock in the files of an environment; ``name`` is for messages.

    Raises:
        BadInput: if no lock can be read.
    """
    if tree.kind(f"/{LOCK}") != "file":
        raise BadInput(
            f"{name}: a squashfs without {LOCK}", fix="make one: `toolkit env create -f FILE --over IMAGE`"
        )
    try:
        return msgspec.json.decode(tree.content(f"/{LOCK}", _MOST), type=EnvLock)
    except DECODE_ERRORS as error:
        raise BadInput(f"{name}: {LOCK} in it cannot be read: {error}", fix="create it again") from error
