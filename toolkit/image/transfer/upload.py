"""Split an image into the parts that a registry stores: blobs, and a manifest with the blobs' digests."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import BadInput, CheckFailed, Damaged
from toolkit.files import hash_file, open_given
from toolkit.image.files import oci, workspace
from toolkit.image.files.blobs import ArchiveBlobs, Blobs, FolderBlobs, content
from toolkit.image.files.bounded import Budget
from toolkit.image.files.digest import check_digest
from toolkit.image.files.dockersave import MANIFEST
from toolkit.image.files.inflate import is_packed
from toolkit.image.files.reference import Reference, refer
from toolkit.image.files.sif.siffile import is_sif, read_sif
from toolkit.image.files.source import FileSource
from toolkit.image.files.tar import is_tar
from toolkit.image.sifs.layout import write_layout
from toolkit.image.sifs.sif import full_disks
from toolkit.image.transfer.shrink import shrink_layers
from toolkit.model.progress import Tell
from toolkit.run.registry.manifest import (
    OCI_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    SIF_CONFIG,
    SIF_LAYER,
    TITLE,
    Descriptor,
    digest_of,
    for_image,
    for_sif,
    read_manifest,
)
from toolkit.run.registry.upload import Blob
from toolkit.units import format_size

_HEAD = 512
_CHUNK = 1 << 20
_EMPTY = b"{}"
_SPARE = 256 << 20

Present = Callable[[str], bool]
"""A function that returns whether the registry has a blob with a given digest."""


@dataclass(frozen=True, slots=True)
class ImageUpload:
    """The parts of an image in a registry. ``form`` is the image's format, such as ``oci-archive``.

    toolkit uploads the blobs before the manifest, so that the registry never has an incomplete image.
    """

    form: str
    manifest: bytes
    media_type: str
    blobs: tuple[Blob, ...]

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)


class Bytes:
    """A blob whose content is in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, offset: int, count: int) -> bytes:
        return self._data[offset : offset + count]


@contextlib.contextmanager
def open_upload(image: str, platform: str, has_blob: Present, tell: Tell) -> Iterator[ImageUpload]:
    """Open an image and yield its parts for a registry.

    The image is a SIF, an OCI layout or archive, a Docker archive, or an image of the Docker engine.
    ``platform``, such as ``linux/arm64``, selects one image of a multi-platform index. ``has_blob`` returns
    whether the registry has a blob; toolkit does not compress a layer that the registry has.

    Raises:
        BadInput: if the file is not an image in a supported format, or contains several images and neither
            the name nor ``platform`` selects one.
        CheckFailed: if the image is damaged.
        Missing: if the Docker engine is needed and does not respond.
    """
    reference = refer(image)
    with ExitStack() as stack:
        try:
            yield _open(reference, platform, has_blob, tell, stack)
        except OSError as error:
            if error.filename is None:
                raise
            raise CheckFailed(f"{error.filename}: {error.strerror}") from error


def _open(ref: Reference, platform: str, has_blob: Present, tell: Tell, stack: ExitStack) -> ImageUpload:
    if ref.transport == "docker-daemon":
        return _of_engine(ref, has_blob, tell, stack)
    if ref.path.is_dir():
        blobs = FolderBlobs(ref.path, ref.label, Budget(ref.label), stack)
        return _of_layout(blobs, ref, platform, "oci-layout")
    file = stack.enter_context(open_given(ref.path))
    head = file.read(_HEAD)
    if is_sif(head):
        return _of_sif(file, ref.path, tell)
    if not is_tar(head) and not is_packed(head):
        raise BadInput(
            f"{ref.label}: not an image that toolkit can push; give a SIF, an OCI layout, "
            "an OCI archive or a Docker archive",
            fix="see what the file contains: `toolkit image inspect`",
        )
    check_digest(ref.path)
    archive = ArchiveBlobs(FileSource(file), ref.path.stat().st_size, ref.label, Budget(ref.label))
    if archive.part(oci.INDEX):
        image_upload = _of_layout(archive, ref, platform, "oci-archive")
        if archive.packed or not archive.part(MANIFEST):
            return image_upload
        return _compress_layers(image_upload, stack.enter_context(workspace.folder()), has_blob, tell, stack)
    if not archive.part(MANIFEST) or archive.packed:
        raise BadInput(
            f"{ref.label}: toolkit cannot push this archive, because it is neither an OCI archive nor an "
            "uncompressed archive of `docker save`",
            fix="load the archive with `docker load`, then push docker-daemon:NAME:TAG",
        )
    file.seek(0)
    return _of_save(iter(lambda: file.read(_CHUNK), b""), ref, has_blob, tell, stack)


def _of_sif(file: BinaryIO, path: Path, tell: Tell) -> ImageUpload:
    read_sif(file, path)
    tell.step(f"Reading {path.name}")
    digest = f"sha256:{check_digest(path) or hash_file(path)}"
    size = path.stat().st_size
    layer = Descriptor(SIF_LAYER, digest, size, {TITLE: path.name})
    config = Descriptor(SIF_CONFIG, digest_of(_EMPTY), len(_EMPTY))
    blobs = (Blob(config.digest, config.size, Bytes(_EMPTY)), Blob(digest, size, FileSource(file)))
    return ImageUpload("sif", for_sif(layer, config), OCI_MANIFEST, blobs)


def _of_layout(blobs: Blobs, ref: Reference, platform: str, form: str) -> ImageUpload:
    chosen = oci.choose(blobs, ref.tag, platform)
    text = content(blobs, f"blobs/{chosen.digest.replace(':', '/')}") or b""
    manifest = read_manifest(text, ref.label)
    parts = []
    for blob in manifest.blobs:
        part = blobs.part(f"blobs/{blob.digest.replace(':', '/')}")
        if part is None or part.size != blob.size:
            raise Damaged(
                f"{ref.label}: the image is incomplete: the blob {blob.digest[:19]}… is missing or has the "
                "wrong size",
                fix="copy or save the image again",
            )
        parts.append(Blob(blob.digest, blob.size, part))
    return ImageUpload(form, text, manifest.media_type or OCI_MANIFEST, tuple(parts))


def _of_engine(ref: Reference, has_blob: Present, tell: Tell, stack: ExitStack) -> ImageUpload:
    from toolkit.run.docker.engine import connect, stream_archive
    from toolkit.run.docker.engine_images import named_image, size_of

    client = stack.enter_context(contextlib.closing(connect()))
    image = named_image(client, ref.tag)
    size = size_of(image)
    root = workspace.temporary_root()
    workspace.require_space(
        root,
        size + _SPARE,
        "the image",
        "delete files on that disk, or set TMPDIR to a folder on another disk",
    )
    tell.step(f"Copying {ref.tag} from the Docker engine ({format_size(size)})")
    return _of_save(stream_archive(client, str(image.id)), ref, has_blob, tell, stack)


def _of_save(
    chunks: Iterator[bytes], ref: Reference, has_blob: Present, tell: Tell, stack: ExitStack
) -> ImageUpload:
    """Convert the output of ``docker save`` to the parts of an image in a registry."""
    work = stack.enter_context(workspace.folder())
    with full_disks(work):
        write_layout(chunks, work / "layout", tell)
    blobs = FolderBlobs(work / "layout", ref.label, Budget(ref.label), stack)
    saved = _of_layout(
        blobs, ref if not ref.tag else Reference(ref.label, None, ref.path), "", "docker-daemon"
    )
    return _compress_layers(saved, work, has_blob, tell, stack)


def _compress_layers(
    upload: ImageUpload, work: Path, has_blob: Present, tell: Tell, stack: ExitStack
) -> ImageUpload:
    """Compress the uncompressed layers of ``upload``, and return the parts with a new manifest.

    If all layers are already compressed, return ``upload``. toolkit does not compress such a layer again,
    because its digest would change. With the unchanged digest, toolkit finds the layer in a registry that
    already has it, and does not upload the layer.
    """
    layers, have = read_manifest(upload.manifest, "the image").layers, {b.digest: b for b in upload.blobs}
    plain = tuple(have[digest] for digest in dict.fromkeys(d.digest for d in layers if _is_plain(d)))
    if not plain:
        return upload
    tell.step(f"Compressing {len(plain)} layers")
    with full_disks(work):
        packed = shrink_layers(plain, work, has_blob, tell)
    layers_by_digest = {blob.digest: layer for blob, layer in zip(plain, packed, strict=True)}
    for layer in packed:
        source = FileSource(stack.enter_context(layer.file.open("rb"))) if layer.file else Bytes(b"")
        have[layer.descriptor.digest] = Blob(layer.descriptor.digest, layer.descriptor.size, source)
    described = tuple(
        layers_by_digest[d.digest].descriptor if d.digest in layers_by_digest else d for d in layers
    )
    config = upload.blobs[0]
    text = for_image(Descriptor(OCI_CONFIG, config.digest, config.size), described)
    parts = dict.fromkeys((config.digest, *(d.digest for d in described)))
    return ImageUpload(upload.form, text, OCI_MANIFEST, tuple(have[digest] for digest in parts))


def _is_plain(layer: Descriptor) -> bool:
    return layer.media_type == OCI_LAYER
