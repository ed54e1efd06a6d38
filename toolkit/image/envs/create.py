"""Make an environment file for an image: resolve, build, install, compile and pack its packages."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from toolkit.errors import BadInput
from toolkit.files import hash_file, write_whole
from toolkit.folders import behind_links
from toolkit.image.envs.build import build, require_way
from toolkit.image.envs.inside import startable_here
from toolkit.image.envs.install import lay_out
from toolkit.image.envs.interpreter import ImagePython, python_of
from toolkit.image.envs.lockfile import LOCK, EnvLock, EnvPackage, encode_lock, is_env, lock_file
from toolkit.image.envs.modules import compile_modules
from toolkit.image.envs.requirements import EnvRequirements
from toolkit.image.envs.resolve import EnvSolution, solve
from toolkit.image.files import workspace
from toolkit.image.files.digest import publish
from toolkit.image.files.sif.squashwrite import write_squashfs
from toolkit.image.sifs.sif import full_disks
from toolkit.model.progress import Tell
from toolkit.run.folders import check_file, make_writable

_EPOCH = 315_532_800
"""The modification time of every file in an environment, in Unix seconds (1980-01-01). The time is fixed, so
that environments with equal packages are equal files.
"""


class EnvMade(msgspec.Struct, frozen=True, kw_only=True):
    """A new environment file.

    ``base`` is the name of the image. ``changed`` lists new packages, removed packages and packages with a
    different version, compared with the earlier environment that toolkit replaced. ``left``, ``outside`` and
    ``compiled`` are as in :class:`EnvLock`.
    """

    schema: str = "toolkit.env.made/1"
    path: str
    bytes: int
    sha256: str
    base: str
    packages: tuple[str, ...]
    changed: tuple[str, ...]
    left: dict[str, str]
    outside: tuple[str, ...]
    compiled: str


def create(
    request: EnvRequirements,
    image: Path,
    target: Path,
    tell: Tell,
    *,
    replaceable: frozenset[str] = frozenset(),
    earlier_lock: EnvLock | None = None,
) -> EnvMade:
    """Write an environment for an image to ``target``, and its lock and its checksum beside ``target``.

    Args:
        request: the requirements of the user.
        image: the image file, which toolkit does not change.
        target: the environment file to write; toolkit replaces an existing environment.
        tell: receives progress messages.
        replaceable: the names of the image's packages that the environment may hide with other versions.
        earlier_lock: the lock of an earlier environment, whose versions toolkit keeps if possible.

    Raises:
        BadInput: if ``target`` exists and is not an environment, or the image has no Python.
        CheckFailed: if a requirement contradicts a package of the image, the build of a package fails, or
            the disk is full.
        Missing: if a tool is missing, the package index does not respond, or toolkit cannot start the image
            to build a package.
    """
    check_target(target)
    python = python_of(image, tell)
    _check_known(replaceable, python)
    earlier_versions = (
        {package.name: package.version for package in earlier_lock.packages} if earlier_lock else {}
    )
    solution = solve(request, python, replaceable, earlier_versions, tell)
    real = behind_links(target)
    make_writable(real.parent, "-o")
    with workspace.folder() as work, full_disks(work):
        lock = _fill_folder(work, request, python, solution, replaceable, tell, image)
        tell.step(f"Packing {target.name}")
        with workspace.beside(real) as part, full_disks(real.parent):
            with part.open("w+b") as out:
                write_squashfs(work / "root", out, _EPOCH)
            digest = hash_file(part)
            part.chmod(0o644)
            lock_file(real).unlink(missing_ok=True)
            publish(part, target, digest)
            write_whole(lock_file(real), encode_lock(lock))
    return _describe_env(target, lock, digest, earlier_versions)


def _fill_folder(
    work: Path,
    request: EnvRequirements,
    python: ImagePython,
    solution: EnvSolution,
    replaceable: frozenset[str],
    tell: Tell,
    image: Path,
) -> EnvLock:
    """Install the packages into the folder ``root`` below ``work``, write the lock there, and return the
    lock.
    """
    way, why = startable_here(image) if solution.sources else (None, "")
    require_way(solution.sources, way, why)
    built = build(solution.sources, python, way, work, request.options, tell) if way else ()
    packages: tuple[EnvPackage, ...] = tuple(
        sorted((*solution.packages, *(package for package, _ in built)), key=lambda package: package.name)
    )
    root = work / "root"
    root.mkdir()
    scripts = lay_out(root, packages, [wheel for _, wheel in built], python, request.options, tell)
    compiled = ""
    if packages:
        compiled = compile_modules(root, packages, python, lambda: way or startable_here(image)[0], tell)
    lock = EnvLock(
        base=python.base,
        requirements=request.requirements,
        constraints=request.constraints,
        options=request.options,
        replaced=tuple(sorted(replaceable)),
        outside=request.code_folders,
        left=request.omissions,
        packages=packages,
        compiled=compiled,
        scripts=scripts,
    )
    (root / LOCK).write_bytes(encode_lock(lock))
    return lock


def check_target(target: Path) -> None:
    """Check that toolkit may overwrite ``target``: it is an environment, is empty or does not exist.

    Raises:
        BadInput: if ``target`` exists and is not an environment; the message names the file.
    """
    check_file(target, "-o", "my.env")
    if target.exists() and target.stat().st_size and not is_env(target):
        raise BadInput(f"-o {target}: the file exists and is not an environment", fix="name another file")


def _check_known(replaceable: frozenset[str], python: ImagePython) -> None:
    if unknown := sorted(replaceable - python.packages.keys()):
        raise BadInput(f"--replace {unknown[0]}: the image {python.base.name} does not have this package")


def _describe_env(target: Path, lock: EnvLock, digest: str, earlier_versions: Mapping[str, str]) -> EnvMade:
    packages = {package.name: package.version for package in lock.packages}
    removals = [f"{name} removed" for name in earlier_versions if name not in packages]
    news = [
        f"{name} {version}" for name, version in packages.items() if earlier_versions.get(name) != version
    ]
    return EnvMade(
        path=str(target),
        bytes=target.stat().st_size,
        sha256=digest,
        base=lock.base.name,
        packages=tuple(f"{name} {version}" for name, version in packages.items()),
        changed=(*news, *removals),
        left=lock.left,
        outside=lock.outside,
        compiled=lock.compiled,
    )
