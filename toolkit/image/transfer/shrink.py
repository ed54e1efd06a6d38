"""Compress the layers of an image for a registry, except layers that the registry already has."""

import hashlib
import os
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit import hints
from toolkit.model.progress import Tell
from toolkit.run.registry.manifest import OCI_LAYER, Descriptor
from toolkit.run.registry.upload import Blob

_GZIP = f"{OCI_LAYER}+gzip"
_LEVEL = 6
_WINDOW = 31
"""The value of zlib's argument ``wbits`` for which zlib writes the gzip format. zlib writes neither a time
nor a file name to a gzip header, so equal layers give equal bytes.
"""
_STEP = 1 << 20
_PACKED = "registry/packed"


@dataclass(frozen=True, slots=True)
class ShrunkLayer:
    """A compressed layer: its descriptor for the manifest, and the compressed file.

    ``file`` is None if the registry already has the compressed layer.
    """

    descriptor: Descriptor
    file: Path | None


class _Known(msgspec.Struct, frozen=True):
    """The digest and size of a compressed layer, from the cache of an earlier run."""

    digest: str
    size: int


def shrink_layers(
    layers: tuple[Blob, ...], work: Path, has_blob: Callable[[str], bool], tell: Tell
) -> tuple[ShrunkLayer, ...]:
    """Compress layers with gzip, in parallel on all CPU cores, and return them in the given order.

    toolkit uses gzip because every container engine can read gzip.

    Args:
        layers: the uncompressed layers.
        work: the folder for the compressed files.
        has_blob: a function that returns whether the registry has a blob with a given digest.
        tell: receives progress messages.
    """
    known = {layer.digest: hints.recall(_PACKED, _name(layer.digest), _Known) for layer in layers}
    reusable = {d: k for d, k in known.items() if k is not None and has_blob(k.digest)}
    stop = threading.Event()
    distinct = {layer.digest: layer for layer in layers if layer.digest not in reusable}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            files = dict(
                zip(distinct, pool.map(lambda b: _compress(b, work, stop), distinct.values()), strict=True)
            )
        except BaseException:
            stop.set()
            raise
    layers_to_send = []
    for number, layer in enumerate(layers, 1):
        if blob := reusable.get(layer.digest):
            layers_to_send.append(ShrunkLayer(Descriptor(_GZIP, blob.digest, blob.size), None))
        else:
            layers_to_send.append(files[layer.digest])
        tell.detail(f"{number} of {len(layers)}")
    return tuple(layers_to_send)


def _compress(layer: Blob, work: Path, stop: threading.Event) -> ShrunkLayer:
    file = work / f"{layer.digest.removeprefix('sha256:')}.gz"
    packer, whole, done = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW), hashlib.sha256(), 0
    with file.open("wb") as target:
        while not stop.is_set() and (data := layer.source.read_at(done, _STEP)):
            done += len(data)
            piece = packer.compress(data)
            whole.update(piece)
            target.write(piece)
        piece = packer.flush()
        whole.update(piece)
        target.write(piece)
        size = target.tell()
    digest = f"sha256:{whole.hexdigest()}"
    if not stop.is_set():
        hints.keep(_PACKED, _name(layer.digest), _Known(digest, size))
    return ShrunkLayer(Descriptor(_GZIP, digest, size), file)


def _name(digest: str) -> str:
    return digest.removeprefix("sha256:")
