"""Install a bundle: its files to the cache, its recipes and locks to the user's configuration folder, and its
images to the Docker engine.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolkit.data import cache_dir
from toolkit.errors import BadInput
from toolkit.files import check_given, hash_file
from toolkit.image.sifs.sif import full_disks
from toolkit.image.transfer.bundle_format import BundledImage
from toolkit.image.transfer.bundle_reader import StagedBundle, install, stage
from toolkit.image.transfer.bundled_recipes import (
    different_recipes,
    install_recipes,
    require_recipes,
    require_unused_names,
)
from toolkit.image.trust.detached import require_signed, signature_of
from toolkit.model.progress import Tell
from toolkit.model.signature import FileSignature
from toolkit.run.folders import in_cache

if TYPE_CHECKING:
    from docker import DockerClient


class Unbundled(msgspec.Struct, frozen=True, kw_only=True):
    """The result of installing a bundle.

    ``files`` is the number of files for the cache, including files that the cache already had. ``recipes``
    are the names of the recipes and locks that toolkit wrote. ``replaced`` are the names of recipes whose
    content toolkit replaced. ``images`` are the images that toolkit loaded into the Docker engine.
    ``waiting`` are the images that toolkit did not load, because no Docker engine responded. ``sifs`` are the
    SIF files in the bundle; toolkit does not copy these files.
    """

    schema: str = "toolkit.unbundled/1"
    source: str
    signature: FileSignature
    files: int
    recipes: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    images: tuple[str, ...]
    waiting: tuple[str, ...]
    sifs: tuple[str, ...]


def unbundle(
    source: Path,
    connect: "Callable[[], DockerClient | None]",
    tell: Tell,
    *,
    keyring: Path | None = None,
    replace: bool = False,
) -> Unbundled:
    """Install a bundle from its archive, or from a folder with the unpacked archive.

    toolkit first copies the files to a private folder and compares their hashes with the hashes in the
    bundle. If a hash differs, toolkit installs nothing and does not contact the Docker engine. toolkit does
    not change existing files that have the right content, so callers can repeat the call.

    Args:
        source: the archive or the folder.
        connect: a function that returns a client of the Docker engine, or None if no engine responds.
        tell: receives progress messages.
        keyring: a file of public keys; if given, the bundle must have a signature by one of these keys.
        replace: whether a recipe of the bundle may replace a different recipe with the same name.

    Raises:
        BadInput: if ``source`` is not a bundle, or a different recipe with the same name exists and
            ``replace`` is false.
        CheckFailed: if a hash or the signature is wrong, or the disk is full.
    """
    if not source.is_dir():
        check_given(source)
    signature = _signature(source, keyring)
    cache = in_cache()
    with tempfile.TemporaryDirectory(prefix="unbundle.", dir=cache) as work, full_disks(cache):
        staged = stage(source, Path(work), tell)
        require_signed(source, signature, staged.sha256)
        require_recipes(staged, source)
        if not replace:
            require_unused_names(staged, source)
        replaced = tuple(name for name, _ in different_recipes(staged))
        files = _install_files(staged, tell)
        recipes = install_recipes(staged)
        client = connect() if staged.index.images else None
        images = [_load(client, staged, image, tell) for image in staged.index.images] if client else []
    return Unbundled(
        source=str(source),
        signature=signature,
        files=files,
        recipes=recipes,
        replaced=replaced,
        images=tuple(images),
        waiting=() if client else tuple(image.name for image in staged.index.images),
        sifs=tuple(str(source / name) if source.is_dir() else name for name in staged.index.sifs),
    )


def _signature(source: Path, keyring: Path | None) -> FileSignature:
    """Return the signature of a bundle's archive. For a folder, return a signature in the state ``none``.

    Raises:
        BadInput: if ``keyring`` is given and ``source`` is a folder, because a folder has no signature.
    """
    if not source.is_dir():
        return signature_of(source, keyring)
    if keyring is not None:
        raise BadInput(
            f"--verify-key: {source} is a folder; only the archive of a bundle has a signature",
            fix="give the archive: `toolkit image unbundle BUNDLE.tar --verify-key FILE`",
        )
    return FileSignature()


def _install_files(bundle: StagedBundle, tell: Tell) -> int:
    """Install into the cache each file that a lock of the bundle names.

    Skip files that the cache already has. Return the number of files, including the files that the cache
    already had.
    """
    names = [name for name in bundle.files if name.startswith("files/")]
    tell.step(f"Putting {len(names)} files into {cache_dir() / 'files'}")
    for number, name in enumerate(names, 1):
        target = cache_dir() / name
        if not (target.is_file() and hash_file(target) == bundle.sums[name]):
            install(bundle.files[name], target)
        tell.detail(f"{number} of {len(names)}")
    return len(names)


def _load(client: "DockerClient", bundle: StagedBundle, image: BundledImage, tell: Tell) -> str:
    from toolkit.run.docker.engine_images import load

    tell.step(f"Loading {image.name} into the Docker engine")
    load(client, bundle.files[image.path], image.id, image.name)
    return image.name
