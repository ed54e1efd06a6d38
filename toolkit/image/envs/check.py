"""Compare an environment with its checksum, its lock and an image, or compare two environments."""

from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from toolkit.errors import CheckFailed
from toolkit.files import open_given
from toolkit.image.envs.interpreter import python_of
from toolkit.image.envs.kept_packages import is_kept
from toolkit.image.envs.lockfile import EnvBase, EnvLock, lock_in
from toolkit.image.files.bounded import Budget
from toolkit.image.files.digest import check_digest
from toolkit.image.files.sif.squash import SquashTree
from toolkit.model.progress import Tell

_INFO = ".dist-info"
AGAIN = "build the environment again for the image of your job: `toolkit env add {} --over {}`"


class EnvCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check of an environment; ``told`` is the result in words, for the user."""

    name: str
    ok: bool
    told: str


class EnvChecked(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all checks of an environment."""

    schema: str = "toolkit.env.checked/1"
    path: str
    checks: tuple[EnvCheck, ...]

    @property
    def ok(self) -> bool:
        """Return whether all checks pass."""
        return all(check.ok for check in self.checks)


class EnvChange(msgspec.Struct, frozen=True, kw_only=True):
    """A package whose version differs between two environments.

    ``old`` is the version in the first environment, and ``new`` the version in the second environment. An
    empty text means that the environment lacks the package.
    """

    name: str
    old: str
    new: str


def differs(base: EnvBase, digest: str, python: str, glibc: str, architecture: str) -> str:
    """Return how an image differs from an environment's base image, in words for the user. If the image is
    the base image, return an empty text.

    Args:
        base: the base image in the environment's lock.
        digest: the digest of the image, as ``sha256:…``.
        python: the version of the image's Python.
        glibc: the version of the image's C library.
        architecture: the processor architecture of the image, for example ``x86_64``.
    """
    if base.digest == digest:
        return ""
    if architecture and architecture != base.architecture:
        return f"the environment was made for {base.architecture}, but the image is for {architecture}"
    minor = base.python.split(".")[:2]
    if python and python.split(".")[:2] != minor:
        return f"the environment was made for Python {'.'.join(minor)}, but the image has {python}"
    if glibc and tuple(map(int, glibc.split("."))) < tuple(map(int, base.glibc.split("."))):
        return f"the environment was made for glibc {base.glibc}, but the image has {glibc}"
    return (
        f"the environment was made over {base.name} ({base.digest[:19]}…), but the image's digest is "
        f"{digest[:19]}…"
    )


def check_env(env: Path, image: Path | None, tell: Tell) -> EnvChecked:
    """Check that an environment has the right checksum and the packages in its lock, and that ``image`` is
    its base image.

    If ``image`` is None, toolkit does not check the base image.

    Raises:
        BadInput: if toolkit cannot read the environment, the lock in the environment, or the image.
        Damaged: if the environment or the image is damaged.
    """
    checks = [_bytes(env)]
    with open_given(env) as file:
        tree = SquashTree(file, 0, str(env), Budget(str(env)))
        lock = lock_in(tree, str(env))
        checks.append(_contents(tree, lock))
    if image is not None:
        checks += _over(lock, image, tell)
    return EnvChecked(path=str(env), checks=tuple(checks))


def _bytes(env: Path) -> EnvCheck:
    try:
        noted = check_digest(env)
    except CheckFailed as error:
        return EnvCheck(name="checksum", ok=False, told=error.message)
    detail = (
        f"sha256:{noted[:12]}…"
        if noted
        else f"{env.name}.sha256 does not exist, so toolkit cannot check the file"
    )
    return EnvCheck(name="checksum", ok=True, told=detail)


def _contents(tree: SquashTree, lock: EnvLock) -> EnvCheck:
    stems = (name.removesuffix(_INFO) for name in tree.names(lock.site) if name.endswith(_INFO))
    versions = {canonicalize_name(stem.partition("-")[0]): stem.partition("-")[2] for stem in stems}
    wanted = {package.name: package.version for package in lock.packages}
    odd = sorted({*versions} ^ {*wanted} | {name for name in wanted if versions.get(name) != wanted[name]})  # type: ignore[call-overload]  # a normalised name is a text
    detail = f"packages that differ from the lock: {', '.join(odd[:5])}" if odd else f"{len(wanted)} packages"
    return EnvCheck(name="packages", ok=not odd, told=detail)


def _over(lock: EnvLock, image: Path, tell: Tell) -> list[EnvCheck]:
    base = python_of(image, tell).base
    why = differs(lock.base, base.digest, base.python, base.glibc, base.architecture)
    same = EnvCheck(name="image", ok=not why, told=why or f"the environment was made over {image.name}")
    changed = [
        f"{name}: the lock has {version}, the image has {base.has.get(name, 'none')}"
        for name, version in lock.base.has.items()
        if base.has.get(name) != version and (is_kept(name) or not lock.version(name))
    ]
    detail = ", ".join(changed[:5]) if changed else "the image has the packages in the lock"
    return [same, EnvCheck(name="packages of the image", ok=not changed, told=detail)]


def changes(old: EnvLock, new: EnvLock) -> tuple[EnvChange, ...]:
    """Return the packages whose versions differ between the locks of two environments, sorted by name."""
    names = sorted({package.name for package in (*old.packages, *new.packages)})
    pairs = ((name, old.version(name), new.version(name)) for name in names)
    return tuple(EnvChange(name=name, old=a, new=b) for name, a, b in pairs if a != b)
