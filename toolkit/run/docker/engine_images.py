"""Find images in the Docker engine by name, save an image to a file, and load an image."""

import difflib
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from toolkit.errors import BadInput, CheckFailed
from toolkit.run.docker.engine import find_image, stream_archive, tag_image
from toolkit.run.docker.engine_errors import translate_errors

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_SPARE = 256 << 20
_LOADED = re.compile(r"Loaded image(?: ID)?: (?P<image>\S+)")
_HEX = re.compile(r"(?:blobs/sha256/)?(?P<hex>[0-9a-f]{64})(?:\.json)?")
_LISTS = ("manifest.json", "index.json")
_MOST_TEXT = 16 << 20


def named_image(client: "DockerClient", name: str) -> "Image":
    """Return the Docker engine's image with this name or ID.

    Raises:
        BadInput: if the engine has no such image; the error lists similar names.
    """
    import docker

    try:
        image = find_image(client, name)
    except (docker.errors.InvalidArgument, CheckFailed) as error:
        raise BadInput(f"{name}: not a valid name of an image: {error}") from error
    if image is not None:
        return image
    with translate_errors("listing the engine's images"):
        tags = sorted(
            {t for image in client.api.images() for t in image.get("RepoTags") or ()} - {"<none>:<none>"}
        )
    near = difflib.get_close_matches(name, tags, n=5, cutoff=0.5)
    listed = f"similar names: {', '.join(near)}" if near else f"its images: {', '.join(tags[:10]) or 'none'}"
    raise BadInput(
        f"{name}: the Docker engine has no such image; {listed}",
        fix="list all images with `docker images`"
        if tags
        else "get the image with `docker pull`, `docker load` or `toolkit image build`",
    )


def size_of(image: "Image") -> int:
    """Return the total size of an image's files in bytes, without compression."""
    size = int(image.attrs.get("Size") or 0)
    if not image.attrs.get("Descriptor"):
        return size
    # With containerd's image store, the Docker engine reports only the size of the compressed layers.
    with translate_errors(f"asking for the size of the image {str(image.id)[:19]}"):
        return max(size, sum(int(step.get("Size") or 0) for step in image.history()))


def save(client: "DockerClient", image: "Image", file: BinaryIO) -> int:
    """Write an image to a file as a docker-archive, and return its size in bytes.

    Raises:
        CheckFailed: if the engine sends more than 256 MiB plus twice the size of the image's files.
        Missing: if the engine stops answering.
    """
    most, size = 2 * size_of(image) + _SPARE, 0
    for chunk in stream_archive(client, str(image.id)):
        size += len(chunk)
        if size > most:
            raise CheckFailed(f"the Docker engine sends more than {most >> 20} MiB for the image {image.id}")
        file.write(chunk)
    file.flush()
    return size


def load(client: "DockerClient", archive: Path, identity: str, name: str) -> None:
    """Load an image from a docker-archive, unless the Docker engine already has the image. In both cases,
    give the image the tag ``name``.

    ``identity`` is the image's ID in the engine that saved the archive. The same image may have another ID in
    ``client``'s engine: some engines use the digest of the image's configuration as the ID, and others use
    the digest of the image's manifest.

    Raises:
        CheckFailed: if the archive does not contain the image ``identity``.
        Missing: if the engine stops answering.
    """
    if (loaded := _first(client, (identity,))) is None:
        identities = _identities(archive)
        if identity not in identities:
            raise CheckFailed(
                f"{archive}: the archive does not contain the image {name}",
                fix="make the bundle again: `toolkit image bundle`",
            )
        loaded = _first(client, identities) or load_archive(client, archive)
    existing = find_image(client, name)
    if existing is None or existing.id != loaded:
        tag_image(client, loaded, name)


def load_archive(client: "DockerClient", archive: Path) -> str:
    """Load the only image of an archive into the engine, and return the image's ID.

    Raises:
        CheckFailed: if the engine refuses the archive, or the archive does not contain exactly one image.
    """
    names: list[str] = []
    with translate_errors(f"loading {archive.name}"), archive.open("rb") as file:
        for event in client.api.load_image(file):
            if "error" in event:
                raise CheckFailed(f"{archive}: the Docker engine refuses the archive: {event['error']}")
            names += _LOADED.findall(event.get("stream") or "")
    loaded = {str(image.id) for name in names if (image := find_image(client, name)) is not None}
    if not loaded and (existing := _first(client, _identities(archive))):
        # With containerd's image store, the engine may not find an image by a name without a registry, such
        # as ``base:1``, so use the ID.
        loaded = {existing}
    if len(loaded) != 1:
        raise CheckFailed(f"{archive}: the archive contains {len(loaded)} images; expected one")
    return loaded.pop()


def _first(client: "DockerClient", ids: tuple[str, ...]) -> str | None:
    """Return the first ID in ``ids`` for which the engine has an image. Return ``None`` if there is none."""
    return next((name for name in ids if find_image(client, name) is not None), None)


def _identities(archive: Path) -> tuple[str, ...]:
    """Return the IDs that an engine may use for the images of an archive: the digests of the images'
    configurations and manifests. Return no IDs if toolkit cannot read the archive.
    """
    try:
        with tarfile.open(archive) as tar:
            lists = {m.name: tar.extractfile(m) for m in tar if m.name in _LISTS and m.size <= _MOST_TEXT}
            texts = {name: json.load(file) for name, file in lists.items() if file is not None}
        return tuple(_named_in(texts))
    except (tarfile.TarError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def _named_in(texts: dict[str, Any]) -> Iterator[str]:
    for entry in texts.get("manifest.json") or ():
        if named := _HEX.fullmatch(entry["Config"]):
            yield f"sha256:{named['hex']}"
    for entry in (texts.get("index.json") or {}).get("manifests") or ():
        yield entry["digest"]
