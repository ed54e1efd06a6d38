"""Write a bundle: an archive from which users install toolkit and build images on a machine without network
access.
"""

import contextlib
import platform
import re
import tarfile
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from toolkit import __version__
from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.files import hash_file
from toolkit.image.builds.based import ensure_locked_base
from toolkit.image.files import workspace
from toolkit.image.files.digest import check_digest, digest_file
from toolkit.image.files.sif.siffile import read_sif
from toolkit.image.locks.fetch import fetch_files
from toolkit.image.locks.lock import files_of, fitting_lock, lock_path
from toolkit.image.locks.recipe import load
from toolkit.image.sifs.sif import full_disks
from toolkit.image.transfer.bundle_format import INDEX, INSTALL, NAME, SUMS, BundledImage, Index
from toolkit.image.trust.detached import signature_file
from toolkit.model.lock import Lock
from toolkit.model.progress import Tell
from toolkit.run.docker.builder import ensure_builder
from toolkit.run.docker.engine_images import named_image, save
from toolkit.run.folders import check_file, in_cache, make_writable
from toolkit.run.packages.wheelhouse import gather
from toolkit.units import format_size

if TYPE_CHECKING:
    from docker import DockerClient

_EXECUTABLE = 0o755
_PLAIN = 0o644


class Bundled(msgspec.Struct, frozen=True, kw_only=True):
    """The result of ``toolkit image bundle``: the path of the archive, its SHA-256, its size in ``bytes``,
    the number of its ``files``, and its index.
    """

    schema: str = "toolkit.bundled/1"
    path: str
    sha256: str
    bytes: int
    files: int
    index: Index


def bundle(
    client: "DockerClient | None",
    recipes: tuple[str, ...],
    target: Path,
    tell: Tell,
    *,
    sifs: tuple[Path, ...] = (),
    pythons: tuple[str, ...] = (),
    builder: bool = True,
    accepted_hosts: Collection[str] = (),
) -> Bundled:
    """Write a bundle of ``recipes`` to ``target``, and write the bundle's checksum file beside ``target``.

    ``client`` is a client of the Docker engine. Without recipes, ``client`` is None, and the bundle has no
    Docker images. ``sifs`` are SIF files to include. ``pythons`` are the Python releases on the target
    machine, such as ``3.11``; the default is this machine's release. If ``builder`` is true and ``client`` is
    given, the bundle includes the Docker image that converts images to SIF files. ``accepted_hosts`` are
    hosts from which the user allows downloads. The mirrors and package indexes in the settings need no
    permission.

    Raises:
        BadInput: if a recipe does not have a valid lock, or a SIF file is invalid. Also if ``target`` is a
            folder, or two recipes or two SIF files have the same name.
        Missing: if toolkit cannot download a file of the bundle.
        CheckFailed: if the disk is full; toolkit then removes the incomplete bundle.
    """
    check_file(target, "-o", "toolkit.tar")
    make_writable(target.parent, "-o")
    pythons = pythons or (".".join(platform.python_version_tuple()[:2]),)
    sifs = tuple(dict.fromkeys(sifs))
    _require_names("--sif", tuple(sif.name for sif in sifs))
    locks = _locks(recipes, accepted_hosts)
    cache = in_cache()
    with (
        tempfile.TemporaryDirectory(prefix="bundle.", dir=cache) as folder,
        full_disks(cache),
        workspace.beside(target) as part,
    ):
        work = Path(folder)
        files = {INSTALL: shipped_folder("containers") / INSTALL, **_sources(locks, tell)}
        images = _images(client, locks, work, tell, builder=builder) if client else []
        files |= {image.path: work / image.path for image in images}
        files |= {f"sif/{sif.name}": _check_sif(sif) for sif in sifs}
        files |= {f"sif/{n.name}": n for n in map(digest_file, sifs) if n.is_file()}
        files |= _wheels(work / "wheels", pythons, tell)
        index = Index(
            toolkit=__version__,
            pythons=pythons,
            machine=platform.machine(),
            recipes=tuple(sorted(locked.name for locked in locks)),
            images=tuple(sorted(images, key=lambda image: image.name)),
            sifs=tuple(sorted(f"sif/{sif.name}" for sif in sifs)),
        )
        files[INDEX] = work / INDEX
        files[INDEX].write_bytes(msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n")
        tell.step(f"Writing {target.name} ({format_size(sum(f.stat().st_size for f in files.values()))})")
        digest = _write_archive(target, part, files, tell)
    return Bundled(
        path=str(target), sha256=digest, bytes=target.stat().st_size, files=len(files) + 1, index=index
    )


@dataclass(frozen=True, slots=True)
class _LockedRecipe:
    """A recipe and its lock; ``argument`` is the name or path of the recipe in the user's command."""

    name: str
    argument: str
    lock: Lock


def _locks(recipes: tuple[str, ...], accepted_hosts: Collection[str]) -> list[_LockedRecipe]:
    """Return the lock of each recipe that the user's command names.

    Raises:
        BadInput: if a name is invalid, a lock is out of date, or a lock is based on an image in a registry.
    """
    known = {place: load(place) for place in recipes}
    _require_names("RECIPES", tuple(recipe.name for recipe in known.values()))
    locks = [
        _LockedRecipe(recipe.name, place, fitting_lock(recipe, place, accepted_hosts))
        for place, recipe in known.items()
    ]
    for locked in locks:
        if locked.lock.base.published:
            raise BadInput(
                f"{locked.argument}: the lock is based on the published image {locked.lock.base.published}, "
                "which a bundle cannot contain",
                fix="on the target machine, pull this image from a registry, then build from the lock",
            )
    return locks


def _sources(locks: Sequence[_LockedRecipe], tell: Tell) -> dict[str, Path]:
    return {
        name: path
        for locked in locks
        for name, path in _of_lock(locked.name, locked.argument, locked.lock, tell).items()
    }


def _images(
    client: "DockerClient", locks: Sequence[_LockedRecipe], work: Path, tell: Tell, *, builder: bool
) -> list[BundledImage]:
    """Save the base image of each lock to the folder ``work``. If ``builder`` is true, also save the image
    that converts images to SIF files. Return the saved images without duplicates.
    """
    images: list[BundledImage] = []
    for locked in locks:
        sources = fetch_files(files_of(locked.lock), tell, recipe=locked.name)
        images.append(_save_image(client, ensure_locked_base(client, locked.lock, sources, tell), work, tell))
    if builder:
        images.append(_save_image(client, ensure_builder(client, tell), work, tell))
    return list({image.name: image for image in images}.values())


def _wheels(folder: Path, pythons: tuple[str, ...], tell: Tell) -> dict[str, Path]:
    folder.mkdir()
    return {f"wheels/{wheel.name}": wheel for wheel in gather(folder, pythons, platform.machine(), tell)}


def _write_archive(target: Path, part: Path, files: Mapping[str, Path], tell: Tell) -> str:
    """Write the archive to ``part``, and rename ``part`` to ``target``. Write the checksum file beside
    ``target``, and return the archive's SHA-256.
    """
    with full_disks(target.parent):
        write(part, files, tell)
        digest = hash_file(part)
        digest_file(target).unlink(missing_ok=True)
        signature_file(target).unlink(missing_ok=True)
        part.replace(target)
        digest_file(target).write_text(f"{digest}  {target.name}\n", "utf-8")
    return digest


def write(target: Path, files: Mapping[str, Path], tell: Tell) -> None:
    """Write a tar archive of ``files`` (path in the archive → path on this machine).

    The first member is the list of the files' hashes. For the same ``files``, toolkit always writes the same
    bytes.
    """
    sums = {name: hash_file(path) for name, path in files.items()}
    listed = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{SUMS}.") as lines:
        lines.write(listed.encode())
        lines.flush()
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, path in ((SUMS, Path(lines.name)), *sorted(files.items())):
                tell.detail(name)
                with path.open("rb") as file:
                    archive.addfile(_entry(name, file), file)


def _entry(name: str, file: BinaryIO) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = file.seek(0, 2)
    file.seek(0)
    entry.mode = _EXECUTABLE if name == INSTALL or name.endswith(".sif") else _PLAIN
    return entry


def _require_names(option: str, names: tuple[str, ...]) -> None:
    """Check the names of the files that the user gives with ``option``.

    Each name must be valid in a bundle. Two names must not be equal or differ only in upper and lower case,
    such as ``A.sif`` and ``a.sif``.

    Raises:
        BadInput: if a check fails; the message names the first file that fails.
    """
    for number, name in enumerate(names):
        if not NAME.fullmatch(name):
            raise BadInput(
                f"{option}: {name!r} is not a valid file name in a bundle: use ASCII letters, digits and "
                f"._+~:%@=-, and begin with a letter or digit",
                fix="rename the file",
            )
        if name.casefold() in map(str.casefold, names[:number]):
            raise BadInput(
                f"{option}: a bundle cannot contain two files with the name {name} (upper and lower case "
                "count as equal)",
                fix="leave out or rename one of the files",
            )


def _of_lock(name: str, argument: str, lock: Lock, tell: Tell) -> dict[str, Path]:
    """Return the files of a recipe. Each path in the bundle maps to the file's path on this machine.

    The files are the recipe, its lock, the lock's signature file if it exists, and the files that the lock
    names.
    """
    from toolkit.data import find

    have = fetch_files(files_of(lock), tell, recipe=name)
    files = {f"files/{digest}/{path.name}": path for digest, path in have.items()}
    locked = lock_path(argument)
    files[f"recipes/{name}.toml"] = find("recipes", argument, ".toml")
    files[f"recipes/{locked.name}"] = locked
    if (signature := signature_file(locked)).is_file():
        files[f"recipes/{signature.name}"] = signature
    return files


def _save_image(client: "DockerClient", name: str, work: Path, tell: Tell) -> BundledImage:
    image = named_image(client, name)
    path = f"images/{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}.tar"
    if not (work / path).exists():
        (work / "images").mkdir(exist_ok=True)
        tell.step(f"Copying {name} from the Docker engine")
        with (work / path).open("wb") as file:
            save(client, image, file)
    return BundledImage(name=name, id=str(image.id), path=path)


def _check_sif(sif: Path) -> Path:
    """Check that a SIF is complete and matches its checksum file, and return the SIF's path.

    Raises:
        BadInput: if the file cannot be read, or is not a SIF.
        CheckFailed: if the SIF is damaged, or does not match its checksum file.
    """
    with _open_sif(sif) as file:
        read_sif(file, sif)
    check_digest(sif)
    return sif


@contextlib.contextmanager
def _open_sif(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadInput(f"--sif {path}: {error.strerror}") from error
    with file:
        yield file
