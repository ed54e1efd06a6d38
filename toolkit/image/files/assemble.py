"""Combine the layers of an image into one file tree, and verify digests of layers."""

from dataclasses import dataclass

from toolkit.errors import Damaged
from toolkit.image.files.blobs import Blobs
from toolkit.image.files.bounded import Budget
from toolkit.image.files.config import ImageConfig
from toolkit.image.files.inflate import inflate
from toolkit.image.files.layers import LayeredTree
from toolkit.image.files.source import HashingSource, SourceRange

HASHED_UNASKED = 1 << 30
"""toolkit verifies the digests of uncompressed layers only if all layers of the image together have at most
this size in bytes. To verify the digests, toolkit reads the layers completely; 1 GiB takes about a second.
"""


@dataclass(frozen=True, slots=True)
class ImageLayer:
    """A layer of an image.

    ``digest`` and ``size`` (in bytes) belong to the file ``path``, which may be compressed. ``diff_id`` is
    the digest of the unpacked tar. A field is None if the image does not state the value.
    """

    path: str
    digest: str | None = None
    diff_id: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image in an archive or a folder: its configuration, its layers and its digest."""

    config: ImageConfig
    layers: tuple[ImageLayer, ...]
    digest: str


def assemble(blobs: Blobs, image: StoredImage, budget: Budget) -> LayeredTree:
    """Return the file tree of an image, and verify the digests of its layers.

    toolkit does not verify uncompressed layers if all layers together are larger than ``HASHED_UNASKED``, or
    if the archive that contains the layers is compressed as a whole.

    Raises:
        CheckFailed: if a layer is missing or damaged, or its digest is wrong.
    """
    tree = LayeredTree(blobs.name, budget)
    parts = [_part(blobs, layer) for layer in image.layers]
    # If the archive is compressed as a whole, its checksum covers the layers. Do not hash them in this case.
    unasked = not blobs.packed and sum(part.size for part in parts) <= HASHED_UNASKED
    for number, (layer, part) in enumerate(zip(image.layers, parts, strict=True), 1):
        name = f"{blobs.name}: layer {number} of {len(parts)}"
        _add(tree, layer, part, name, budget, unasked=unasked)
    return tree


def _add(
    tree: LayeredTree, layer: ImageLayer, part: SourceRange, name: str, budget: Budget, *, unasked: bool
) -> None:
    stored = HashingSource(part, layer.digest, name) if layer.digest else part
    unpacked = inflate(stored, name, budget)
    if unpacked is not None:
        tree.add(unpacked, name)
    elif unasked and (digest := layer.digest or layer.diff_id):
        HashingSource(part, digest, name).check()
    if unpacked is None:
        tree.add(part, name)
    elif isinstance(stored, HashingSource):
        stored.check()


def _part(blobs: Blobs, layer: ImageLayer) -> SourceRange:
    part = blobs.part(layer.path)
    if part is None:
        raise Damaged(
            f"{blobs.name}: the image is incomplete: {layer.path[:120]} is missing",
            fix="copy or save the image again",
        )
    if layer.size is not None and part.size != layer.size:
        raise Damaged(
            f"{blobs.name}: the image is damaged: {layer.path[:120]} has {part.size} bytes and should have "
            f"{layer.size}",
            fix="copy or save the image again",
        )
    return part
