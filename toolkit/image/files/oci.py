"""Choose an image in an OCI layout (opencontainers/image-spec: image-layout.md, image-index.md)."""

import hashlib
import platform
import re
from dataclasses import dataclass

import msgspec

from toolkit.errors import BadInput, CheckFailed, Damaged
from toolkit.image.files.assemble import ImageLayer, StoredImage
from toolkit.image.files.blobs import Blobs, content, decode_json
from toolkit.image.files.config import read_config

INDEX = "index.json"
MARK = "oci-layout"
_NAME = "org.opencontainers.image.ref.name"
_FULL_NAME = "io.containerd.image.name"
_DIGEST = re.compile(r"sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128})")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_MOST_DEEP = 8
_MOST = 1000
_MOST_LAYERS = 500
"""Maximum number of layers that toolkit reads; container engines allow 127 layers."""


class _Platform(msgspec.Struct, frozen=True):
    os: str = ""
    architecture: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(p[:20] for p in (self.os, self.architecture, self.variant) if p)


class _Descriptor(msgspec.Struct, frozen=True):
    digest: str
    size: int
    mediaType: str = ""  # noqa: N815 - the field's name in the OCI specification
    platform: _Platform | None = None
    annotations: dict[str, str] | None = None


class _Manifest(msgspec.Struct, frozen=True):
    """An index, which has ``manifests``, or a manifest, which has ``layers`` and ``config``."""

    manifests: list[_Descriptor] | None = None
    layers: list[_Descriptor] | None = None
    config: _Descriptor | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    descriptor: _Descriptor
    manifest: _Manifest
    names: tuple[str, ...]
    platform: _Platform | None


def choose(blobs: Blobs, tag: str, platform_name: str) -> StoredImage:
    """Return the image with the name, tag or digest ``tag``. ``platform_name`` is the image's platform, for
    example ``linux/arm64``.

    If ``tag`` is empty, all images in the layout must have the same name. If ``platform_name`` is empty and
    the name has only one image, return this image, even if the image is not for this machine's platform. If
    ``platform_name`` is empty and the name has several images, return the image for this machine's platform.

    Raises:
        BadInput: if no image or several images match; the message lists the names or the platforms. Also if
            the folder or archive is not an OCI layout, or the layers are encrypted.
        CheckFailed: if the layout is damaged, a digest is wrong, or there are too many images or layers.
    """
    data = content(blobs, INDEX)
    if data is None:
        raise BadInput(f"{blobs.name}: not an OCI layout: {INDEX} is missing")
    top = decode_json(data, _Manifest, f"{blobs.name}: {INDEX}")
    candidates = _candidates(blobs, top.manifests or [], (), 0, set())
    candidate = _choose_candidate(blobs.name, _candidates_of(blobs.name, candidates, tag), platform_name)
    config = candidate.manifest.config
    if config is None:
        raise BadInput(f"{blobs.name}: not an image, because its manifest names no configuration")
    layers = candidate.manifest.layers or []
    if len(layers) > _MOST_LAYERS:
        raise CheckFailed(
            f"{blobs.name}: the image has {len(layers)} layers; toolkit reads at most {_MOST_LAYERS}"
        )
    for layer in layers:
        if "encrypted" in layer.mediaType:
            raise BadInput(f"{blobs.name}: its layers are encrypted", fix="save the image without encryption")
    settings, _ = read_config(_blob(blobs, config), blobs.name)
    return StoredImage(
        settings,
        tuple(ImageLayer(_path(blobs, d), d.digest, None, d.size) for d in layers),
        candidate.descriptor.digest,
    )


def _candidates(
    blobs: Blobs, descriptors: list[_Descriptor], names: tuple[str, ...], depth: int, digests: set[str]
) -> list[_Candidate]:
    """Return the images that an index lists, directly or through further indexes.

    ``names`` are the index's names; an image that has no name gets these names. ``depth`` is the number of
    indexes above this index. This function adds the digests that it reads to ``digests``.
    """
    if depth > _MOST_DEEP or len(descriptors) + len(digests) > _MOST:
        raise CheckFailed(
            f"{blobs.name}: toolkit stopped reading: the layout's indexes form a loop or list too many images"
        )
    candidates: list[_Candidate] = []
    for descriptor in descriptors:
        notes = descriptor.annotations or {}
        own = tuple(notes[key] for key in (_NAME, _FULL_NAME) if key in notes) or names
        if (descriptor.digest, own) in {(c.descriptor.digest, c.names) for c in candidates}:
            continue
        if "vnd.docker.reference.type" in notes or str(descriptor.platform or "").startswith("unknown"):
            # Skip Docker's attestations: an attestation describes how an image was built
            # (docs.docker.com/build/metadata/attestations).
            continue
        if descriptor.digest in digests and depth:
            continue
        digests.add(descriptor.digest)
        manifest = decode_json(
            _blob(blobs, descriptor), _Manifest, f"{blobs.name}: {descriptor.digest[:19]}…"
        )
        if manifest.manifests is not None:
            candidates += _candidates(blobs, manifest.manifests, own, depth + 1, digests)
        else:
            candidates.append(_Candidate(descriptor, manifest, own, descriptor.platform))
    return candidates


def _candidates_of(name: str, candidates: list[_Candidate], tag: str) -> list[_Candidate]:
    """Return the images with the name, tag or digest ``tag``. If ``tag`` is empty, return all images, which
    must have the same name.
    """
    if tag:
        named = [c for c in candidates if any(n == tag or n.endswith(f":{tag}") for n in c.names)]
        named = named or [c for c in candidates if c.descriptor.digest == tag]
        if not named:
            raise BadInput(f"{name}: image {tag!r} not found; choices: {_choices(candidates)}")
        return named
    if len({c.names for c in candidates}) > 1:
        raise BadInput(
            f"{name}: the layout contains several images: {_choices(candidates)}",
            fix="name an image: oci:PATH:NAME",
        )
    return candidates


def _choices(candidates: list[_Candidate]) -> str:
    names = sorted({c.names[0] if c.names else c.descriptor.digest for c in candidates})
    return ", ".join(n[:80] if n.isprintable() else ascii(n[:80]) for n in names[:20]) or "none"


def _choose_candidate(name: str, candidates: list[_Candidate], platform_name: str) -> _Candidate:
    if not candidates:
        raise BadInput(f"{name}: the layout contains no image")
    if len({c.descriptor.digest for c in candidates}) == 1 and not platform_name:
        return candidates[0]
    platform = platform_name or this_platform()
    fits = [c for c in candidates if c.platform is None or _fits(c.platform, platform)]
    if not fits or (len({c.descriptor.digest for c in fits}) > 1 and any(c.platform is None for c in fits)):
        shown = ", ".join(sorted({str(c.platform or "unknown") for c in candidates})[:20])
        found = "several images that may be" if fits else "no image"
        raise BadInput(
            f"{name}: the layout has {found} for {platform}; its platforms: {shown}",
            fix="choose a platform with `--platform`",
        )
    return fits[0]


def this_platform() -> str:
    """Return the name of this machine's platform in an OCI index, for example ``linux/amd64``."""
    machine = platform.machine()
    return f"linux/{_MACHINES.get(machine, machine)}"


def _fits(own_platform: _Platform, platform: str) -> bool:
    os, _, rest = platform.partition("/")
    architecture, _, variant = rest.partition("/")
    return (
        own_platform.os in {"", os}
        and own_platform.architecture in {"", architecture}
        and (not variant or own_platform.variant in {"", variant})
    )


def _path(blobs: Blobs, descriptor: _Descriptor) -> str:
    if not _DIGEST.fullmatch(descriptor.digest):
        raise Damaged(
            f"{blobs.name}: {descriptor.digest[:80]!r} is not a digest", fix="copy or save the image again"
        )
    return "blobs/" + descriptor.digest.replace(":", "/")


def _blob(blobs: Blobs, descriptor: _Descriptor) -> bytes:
    path = _path(blobs, descriptor)
    data = content(blobs, path)
    if data is None:
        raise Damaged(
            f"{blobs.name}: the image is incomplete: {path} is missing", fix="copy or save the image again"
        )
    algorithm, _, digest = descriptor.digest.partition(":")
    if hashlib.new(algorithm, data).hexdigest() != digest:
        raise Damaged(
            f"{blobs.name}: the image is damaged: {path} does not match the digest in its name",
            fix="copy or save the image again",
        )
    return data
