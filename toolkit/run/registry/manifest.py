"""Read and write manifests of images (opencontainers/image-spec: manifest.md, image-index.md)."""

import hashlib
import re

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import CheckFailed

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
SIF_CONFIG = "application/vnd.sylabs.sif.config.v1+json"
SIF_LAYER = "application/vnd.sylabs.sif.layer.v1.sif"
"""``apptainer push oras://`` writes the media types ``SIF_CONFIG`` and ``SIF_LAYER``.

Source: apptainer, internal/pkg/client/oras.
"""
TITLE = "org.opencontainers.image.title"

MOST_BYTES = 4 << 20
"""The size of the largest manifest that toolkit accepts, in bytes.

Registries need not accept larger manifests (distribution-spec, "Pushing Manifests").
"""
_MOST_LAYERS = 500
_MOST_SIZE = 1 << 44
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Platform(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operating system, a processor type and its variant, with Go's names, such as ``linux/arm64/v8``."""

    os: str = ""
    architecture: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(part[:20] for part in (self.os, self.architecture, self.variant) if part)


class Descriptor(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A reference to a blob or to another manifest; ``size`` is in bytes."""

    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] = {}
    platform: Platform | None = None


class ImageManifest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Either the manifest of one image (with ``config`` and ``layers``), or an index of several manifests
    (with ``manifests``).
    """

    schema_version: int
    media_type: str = ""
    config: Descriptor | None = None
    layers: tuple[Descriptor, ...] = ()
    manifests: tuple[Descriptor, ...] = ()

    @property
    def blobs(self) -> tuple[Descriptor, ...]:
        """The configuration of an image, followed by its layers, without duplicates; empty for an index."""
        parts = ((self.config,) if self.config else ()) + self.layers
        return tuple({part.digest: part for part in parts}.values())


def read_manifest(text: bytes, name: str) -> ImageManifest:
    """Parse a manifest or an index. Error messages call the image ``name``.

    Raises:
        CheckFailed: if the text is neither a manifest nor an index, or has an invalid value.
    """
    try:
        manifest = msgspec.json.decode(text, type=ImageManifest)
    except DECODE_ERRORS as error:
        raise CheckFailed(f"{name}: its manifest cannot be read: {error}") from error
    if manifest.schema_version != 2:
        raise CheckFailed(
            f"{name}: its manifest has schema version {manifest.schema_version}; toolkit reads version 2"
        )
    if len(manifest.layers) > _MOST_LAYERS or len(manifest.manifests) > _MOST_LAYERS:
        raise CheckFailed(f"{name}: its manifest names more than {_MOST_LAYERS} layers or images")
    for part in (*manifest.blobs, *manifest.manifests):
        if not _DIGEST.fullmatch(part.digest):
            raise CheckFailed(
                f"{name}: its manifest names {part.digest[:80]!r}, which is not a SHA-256 digest"
            )
        if not 0 <= part.size <= _MOST_SIZE:
            raise CheckFailed(f"{name}: its manifest names a blob with an invalid size: {part.size} bytes")
    return manifest


def for_sif(layer: Descriptor, config: Descriptor) -> bytes:
    """Return the bytes of a manifest for the SIF file ``layer``. Equal arguments give equal bytes."""
    return _encoded(ImageManifest(2, OCI_MANIFEST, config, (layer,)))


def for_image(config: Descriptor, layers: tuple[Descriptor, ...]) -> bytes:
    """Return the bytes of a manifest for an image with layers."""
    return _encoded(ImageManifest(2, OCI_MANIFEST, config, layers))


def digest_of(content: bytes) -> str:
    """Return the digest of ``content``: ``sha256:`` and the hash in hexadecimal."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")
