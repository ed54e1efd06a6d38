"""Convert the output of ``docker save`` to an OCI layout, which Apptainer reads faster than a Docker archive.

When Apptainer reads a Docker archive, it first compresses each layer and then unpacks the layer again. To
convert a TensorFlow image of 1.5 GB on 2 cores, Apptainer needs 70 s from a Docker archive and 25 s from an
OCI layout.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import CheckFailed
from toolkit.image.files.bounded import Budget
from toolkit.image.files.inflate import GzipSource, inflate
from toolkit.image.files.source import FileSource
from toolkit.model.progress import Tell
from toolkit.units import format_size

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CHUNK = 1 << 20
_MOST_TEXT = 16 << 20
"""Maximum size in bytes of a configuration or a manifest that toolkit reads into memory."""
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


class _Blob(NamedTuple):
    digest: str
    size: int


class _Layer(NamedTuple):
    """A layer of the archive.

    ``form`` is the media type suffix of the layer's compression, such as ``+gzip``, or empty.
    """

    blob: _Blob
    form: str


def write_layout(chunks: Iterable[bytes], folder: Path, tell: Tell) -> None:
    """Write an OCI layout to ``folder`` from ``chunks``, the output of ``docker save``.

    The function never holds the whole stream in memory. Compressed layers stay compressed; Docker engines
    with containerd's image store send compressed layers.

    Raises:
        CheckFailed: if the stream is truncated, or does not contain exactly one image.
    """
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    try:
        files = dict(_unpack(chunks, blobs, tell))
        (entry,) = _json(blobs, files["manifest.json"])
        config = files[entry["Config"]]
        layer_files = [files[layer] for layer in entry["Layers"]]
        tell.detail(f"Checking the digests of {len(layer_files)} layers")
        layers_of_image = list(_proven(_json(blobs, config), layer_files, blobs))
        layers = [_descriptor(f"{_LAYER}{layer.form}", layer.blob) for layer in layers_of_image]
    except (tarfile.TarError, KeyError, ValueError, TypeError) as error:
        raise CheckFailed(
            f"the archive from the Docker engine is damaged or does not contain exactly one image: {error}",
            fix="check with `docker info` that the Docker engine still runs, then run the same command again",
        ) from error
    manifest = {"mediaType": _MANIFEST, "config": _descriptor(_CONFIG, config), "layers": layers}
    written = _write(blobs, {"schemaVersion": 2, **manifest})
    index = {"schemaVersion": 2, "manifests": [_descriptor(_MANIFEST, written)]}
    (folder / "index.json").write_text(json.dumps(index), "utf-8")
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', "utf-8")


def _unpack(chunks: Iterable[bytes], blobs: Path, tell: Tell) -> Iterator[tuple[str, _Blob]]:
    """Write each file of the archive to ``blobs/SHA256``; yield the file's name in the archive, and the
    digest and the size of the file.
    """
    done = 0
    with tarfile.open(fileobj=io.BufferedReader(_ChunkReader(chunks), _CHUNK), mode="r|") as archive:
        for member in archive:
            source = archive.extractfile(member) if member.isfile() else None
            if source is not None:
                yield member.name, _copy(source, blobs)
                done += member.size
                tell.detail(f"{format_size(done)}")


def _copy(source: IO[bytes], blobs: Path) -> _Blob:
    part = blobs / ".part"
    whole = hashlib.sha256()
    with part.open("wb") as target:
        while chunk := source.read(_CHUNK):
            whole.update(chunk)
            target.write(chunk)
        size = target.tell()
    part.replace(blobs / whole.hexdigest())
    return _Blob(whole.hexdigest(), size)


def _proven(config: Any, layers: list[_Blob], blobs: Path) -> Iterator[_Layer]:  # noqa: ANN401 - JSON of any shape
    """Yield the layers; raise ValueError if the digest of a decompressed layer differs from the digest in the
    image's configuration.
    """
    named = config["rootfs"]["diff_ids"]
    if len(named) != len(layers):
        raise ValueError(f"the image has {len(layers)} layers, but its configuration names {len(named)}")
    for layer, wanted in zip(layers, named, strict=True):
        plain, form = layer.digest, ""
        if f"sha256:{plain}" != wanted:
            plain, form = _unpacked_digest(blobs / layer.digest)
        if f"sha256:{plain}" != wanted:
            raise ValueError("the digest of a layer differs from the digest in the image's configuration")
        yield _Layer(layer, form)


def _unpacked_digest(file: Path) -> tuple[str, str]:
    """Return the digest of a layer's unpacked content, and the media type suffix of the layer's compression.

    Both are empty if the layer is not compressed, or if toolkit does not know its compression.
    """
    budget = Budget("a layer from the Docker engine")
    budget.add_stored(file.stat().st_size)
    with file.open("rb") as packed:
        source = inflate(FileSource(packed), "a layer from the Docker engine", budget)
        if source is None:
            return "", ""
        whole, done = hashlib.sha256(), 0
        while piece := source.read_at(done, _CHUNK):
            whole.update(piece)
            done += len(piece)
    return whole.hexdigest(), "+gzip" if isinstance(source, GzipSource) else "+zstd"


def _json(blobs: Path, blob: _Blob) -> Any:  # noqa: ANN401 - JSON of any shape
    if blob.size > _MOST_TEXT:
        raise ValueError(f"the image's configuration or manifest is larger than {format_size(_MOST_TEXT)}")
    return json.loads((blobs / blob.digest).read_bytes())


def _write(blobs: Path, value: object) -> _Blob:
    text = json.dumps(value, sort_keys=True).encode()
    digest = hashlib.sha256(text).hexdigest()
    (blobs / digest).write_bytes(text)
    return _Blob(digest, len(text))


def _descriptor(kind: str, blob: _Blob) -> dict[str, object]:
    return {"mediaType": kind, "digest": f"sha256:{blob.digest}", "size": blob.size}


class _ChunkReader(io.RawIOBase):
    """A readable file object whose content is a sequence of chunks."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        view = memoryview(buffer)
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
