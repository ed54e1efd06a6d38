"""Download an image from a registry to a file, and check the hashes of the downloaded data."""

import contextlib
import fcntl
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from toolkit.errors import BadInput, CheckFailed
from toolkit.files import hash_file
from toolkit.folders import behind_links
from toolkit.image.files import oci, workspace
from toolkit.image.files.digest import digest_file, note, publish
from toolkit.image.sifs.ociarchive import write_archive
from toolkit.image.sifs.sif import full_disks
from toolkit.model.progress import Tell
from toolkit.run.folders import check_file, make_writable
from toolkit.run.registry.download import fetch_blob
from toolkit.run.registry.images import fetch_manifest
from toolkit.run.registry.manifest import SIF_LAYER, Descriptor, ImageManifest, Platform, digest_of
from toolkit.run.registry.name import RegistryName
from toolkit.run.registry.session import RegistryAccess, RegistrySession, open_session
from toolkit.units import format_size

_SIF_LAYERS = (SIF_LAYER, "appliciation/vnd.sylabs.sif.layer.tar")
"""The media types of a SIF in a registry. Singularity before 3.7 used the second type, with the spelling
error "appliciation".
"""
_PULLED = "pulled"


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """The result of :func:`pull`.

    ``digest`` is the image's digest in the registry. ``form`` is the format of the file: ``sif`` or
    ``oci-archive``. ``sha256`` and ``bytes`` are the hash and the size of the file. If the file already
    existed with the correct hash, toolkit did not download the image, and ``reused`` is true.
    """

    schema: str = "toolkit.pulled/1"
    source: str
    path: str
    form: str
    digest: str
    sha256: str
    bytes: int
    reused: bool


def pull(
    source: RegistryName, target: Path, access: RegistryAccess, tell: Tell, *, platform: str = ""
) -> Pulled:
    """Download the image ``source`` to the file ``target``.

    If the registry has a SIF, ``target`` is this SIF. If the registry has a container image, ``target`` is an
    archive that ``docker load`` reads. If ``target`` is a symbolic link, toolkit writes the file to which the
    link points. ``platform`` is as in :func:`choose`.

    Raises:
        Missing: if the image does not exist, or the registry is unreachable. The next call for the same
            ``target`` resumes the download.
        CheckFailed: if a hash is wrong, or the disk is full; ``target`` is then unchanged.
        BadInput: if toolkit cannot write to ``target``, or the registry has no image for ``platform``.
    """
    check_file(target, "-o", "image.sif")
    real = behind_links(target)
    make_writable(real.parent, "-o")
    tell.step(f"Asking {source.host} for {source}")
    with open_session(source, access) as session:
        text, manifest = _choose_platform(session, source, platform)
        layer = next((d for d in manifest.layers if d.media_type in _SIF_LAYERS), None)
        if layer is None and not manifest.config:
            raise CheckFailed(
                f"{source}: this artifact in the registry is neither a SIF nor a container image; its media "
                f"type is {manifest.media_type or 'unknown'}"
            )
        with _room(real) as room, full_disks(real.parent):
            if layer is not None:
                reused = _pull_sif(session, source, layer, target, room, tell)
            else:
                reused = _pull_image(session, source, (text, manifest), target, room, tell)
    return Pulled(
        source=str(source),
        path=str(target),
        form="sif" if layer else "oci-archive",
        digest=digest_of(text),
        sha256=digest_file(real).read_text("utf-8").partition(" ")[0],
        bytes=target.stat().st_size,
        reused=reused,
    )


def choose(manifest: ImageManifest, name: str, platform: str) -> Descriptor:
    """Return the image for ``platform``, such as ``linux/arm64``, from a multi-platform index.

    ``manifest`` is the index of the image ``name``. If ``platform`` is empty, return the image for this
    machine. If no image is for this machine, but the index has only one image, return it.

    Raises:
        BadInput: if no image is for this platform; the message lists the platforms of the index.
    """
    wanted = Platform(*(platform or oci.this_platform()).split("/")[:3])
    fits = [d for d in manifest.manifests if d.platform and _fits(d.platform, wanted)]
    if not fits and len(manifest.manifests) == 1 and not platform:
        return manifest.manifests[0]
    if not fits:
        platforms = sorted(
            {str(d.platform) for d in manifest.manifests if d.platform and d.platform.os != "unknown"}
        )
        shown = ", ".join(re.sub(r"[^\w/.-]", "?", text) for text in platforms[:20]) or "unknown"
        raise BadInput(
            f"{name}: the registry has no image for {wanted}; its platforms: {shown}",
            fix="choose a platform with `--platform`",
        )
    return fits[0]


def _fits(image_platform: Platform, platform: Platform) -> bool:
    same = image_platform.os == platform.os and image_platform.architecture == platform.architecture
    return same and platform.variant in {"", image_platform.variant}


def _choose_platform(
    session: RegistrySession, source: RegistryName, platform: str
) -> tuple[bytes, ImageManifest]:
    text, manifest = fetch_manifest(session, source, source.reference)
    if manifest.manifests:
        chosen = choose(manifest, str(source), platform)
        text, manifest = fetch_manifest(session, source, chosen.digest)
        if manifest.manifests:
            raise CheckFailed(f"{source}: the image index refers to a second index instead of an image")
    return text, manifest


@contextlib.contextmanager
def _room(target: Path) -> Iterator[Path]:
    """Create the folder beside ``target`` for partial downloads, lock the folder, and yield its path.

    Raises:
        BadInput: if another process downloads an image to ``target``.
    """
    room = target.with_name(f".{target.name}.pull")
    room.mkdir(exist_ok=True)
    with (room / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadInput(
                f"{target}: another process is downloading this file", fix="wait until that process exits"
            ) from error
        try:
            yield room
        except BaseException:
            # Keep partial downloads for the next run, but remove an empty folder.
            if [file.name for file in room.iterdir()] == ["lock"]:
                shutil.rmtree(room, ignore_errors=True)
            raise
        shutil.rmtree(room, ignore_errors=True)


def _pull_sif(
    session: RegistrySession,
    source: RegistryName,
    layer: Descriptor,
    target: Path,
    part_folder: Path,
    tell: Tell,
) -> bool:
    wanted = layer.digest.removeprefix("sha256:")
    if target.is_file() and target.stat().st_size == layer.size and hash_file(target) == wanted:
        tell.step(f"{target} already has this image")
        note(target, wanted)
        return True
    _fetch(session, source, (layer,), part_folder, tell)
    part = part_folder / wanted
    part.chmod(0o755)
    publish(part, target, wanted)
    return False


def _pull_image(
    session: RegistrySession,
    source: RegistryName,
    manifest_and_text: tuple[bytes, ImageManifest],
    target: Path,
    part_folder: Path,
    tell: Tell,
) -> bool:
    text, manifest = manifest_and_text
    _fetch(session, source, manifest.blobs, part_folder, tell, copies=2)
    tell.step(f"Writing {target.name}")
    part = part_folder / _PULLED
    with full_disks(part_folder.parent):
        write_archive(
            part, text, manifest, part_folder, f"{source.host}/{source.repository}:{source.tag or 'pulled'}"
        )
    publish(part, target, hash_file(part))
    return False


def _fetch(
    session: RegistrySession,
    source: RegistryName,
    blobs: tuple[Descriptor, ...],
    part_folder: Path,
    tell: Tell,
    copies: int = 1,
) -> None:
    """Download the missing blobs of an image to ``part_folder``.

    The disk must have space for ``copies`` times the size of all blobs. ``copies`` is 2 if toolkit then
    writes an archive of the blobs to the same disk.

    Raises:
        CheckFailed: if the disk has too little space.
    """
    total = sum(blob.size for blob in blobs)
    size_on_disk = sum(file.stat().st_size for file in part_folder.iterdir())
    workspace.require_space(
        part_folder,
        max(0, copies * total - size_on_disk),
        f"{source}",
        "delete files on that disk, or write to another disk with -o; the next run resumes the download",
    )
    tell.step(f"Fetching {source} ({format_size(total)})")
    before = 0
    for blob in blobs:

        def on_got(size: int, base_size: int = before) -> None:
            tell.detail(f"{(base_size + size) / max(total, 1):.0%}")

        whole = part_folder / blob.digest.removeprefix("sha256:")
        if not whole.exists():
            part = part_folder / f"{whole.name}.part"
            fetch_blob(session, source, blob, part, on_got)
            part.replace(whole)
        before += blob.size
