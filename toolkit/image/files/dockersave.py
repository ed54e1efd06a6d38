"""Choose an image in an archive that ``docker save`` wrote (moby:image/tarexport)."""

import hashlib
import re

import msgspec

from toolkit.errors import BadInput, CheckFailed, Damaged
from toolkit.image.files.assemble import ImageLayer, StoredImage
from toolkit.image.files.blobs import Blobs, content, decode_json
from toolkit.image.files.config import read_config

MANIFEST = "manifest.json"
_NAMED_BY_DIGEST = re.compile(r"(?:blobs/sha256/)?([0-9a-f]{64})(?:\.json)?")
_INNER = re.compile(r"sha256:[0-9a-f]{64}")
_MOST_LAYERS = 500


class _Image(msgspec.Struct, frozen=True):
    Config: str
    Layers: list[str] | None = None
    RepoTags: list[str] | None = None


def choose(blobs: Blobs, tag: str) -> StoredImage:
    """Return the image with the name ``tag``. If ``tag`` is empty, return the only image of the archive.

    The digest in the result is the digest of the image's configuration, so it is the same for every Docker
    engine that has the image. ``docker images`` shows this digest as the image's id, unless the engine uses
    containerd's image store.

    Raises:
        BadInput: if no image or several images match; the message lists the images.
        Damaged: if the archive is damaged.
    """
    data = content(blobs, MANIFEST)
    if data is None:
        raise BadInput(f"{blobs.name}: not an archive of `docker save`: {MANIFEST} is missing")
    image = _choose_image(blobs.name, decode_json(data, list[_Image], f"{blobs.name}: {MANIFEST}"), tag)
    config = content(blobs, image.Config)
    if config is None:
        raise _broken(blobs.name, f"its configuration {image.Config[:80]!r} is missing")
    digest = hashlib.sha256(config).hexdigest()
    if (named := _NAMED_BY_DIGEST.fullmatch(image.Config)) and named[1] != digest:
        raise _broken(
            blobs.name, "its configuration does not match the digest in the configuration's file name"
        )
    settings, inner = read_config(config, blobs.name)
    paths = image.Layers or []
    if len(paths) > _MOST_LAYERS:
        raise CheckFailed(
            f"{blobs.name}: the image has {len(paths)} layers; toolkit reads at most {_MOST_LAYERS}"
        )
    if len(inner) != len(paths):
        raise _broken(blobs.name, f"it has {len(paths)} layers, but its configuration names {len(inner)}")
    return StoredImage(settings, tuple(map(_layer, paths, inner)), f"sha256:{digest}")


def _layer(path: str, diff_id: str) -> ImageLayer:
    named = _NAMED_BY_DIGEST.fullmatch(path)
    return ImageLayer(
        path, f"sha256:{named[1]}" if named else None, diff_id if _INNER.fullmatch(diff_id) else None
    )


def _choose_image(name: str, images: list[_Image], tag: str) -> _Image:
    if not images:
        raise BadInput(f"{name}: the archive contains no image")
    if tag:
        # `docker save` stores the image name as the user wrote it in the command: in its full or short form.
        wanted = {tag, f"{tag}:latest", f"docker.io/{tag}", f"docker.io/library/{tag}"}
        images = [i for i in images if wanted & set(i.RepoTags or ())] or _refuse_tag(name, images, tag)
    if len(images) > 1:
        raise BadInput(
            f"{name}: the archive contains several images: {_choices(images)}",
            fix=f"name an image: docker-archive:{name}:NAME:TAG",
        )
    return images[0]


def _refuse_tag(name: str, images: list[_Image], tag: str) -> list[_Image]:
    raise BadInput(f"{name}: image {tag!r} not found; choices: {_choices(images)}")


def _choices(images: list[_Image]) -> str:
    names = [n for image in images[:20] for n in (image.RepoTags or ["an image without a name"])[:5]]
    return ", ".join(n[:80] if n.isprintable() else ascii(n[:80]) for n in names)


def _broken(name: str, fault: str) -> Damaged:
    return Damaged(f"{name}: the image is damaged: {fault}", fix="copy or save the image again")
