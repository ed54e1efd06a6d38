"""Find images in the Docker engine by name, take one out into a file of ours, and put one in."""

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from toolkit.errors import BadInput, CheckFailed
from toolkit.run.engine import find_image, saved, tag_image
from toolkit.run.engine_errors import speaking

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_SPARE = 256 << 20


def named_image(client: "DockerClient", name: str) -> "Image":
    """Return the engine's image of that name or id.

    Raises:
        BadInput: if it has none, with names that are near.
    """
    import docker

    try:
        found = find_image(client, name)
    except (docker.errors.InvalidArgument, CheckFailed) as error:
        raise BadInput(f"{name}: no name of an image: {error}") from error
    if found is not None:
        return found
    with speaking("listing its images"):
        tags = sorted(
            {t for image in client.api.images() for t in image.get("RepoTags") or ()} - {"<none>:<none>"}
        )
    near = difflib.get_close_matches(name, tags, n=5, cutoff=0.5)
    listed = f"near it are {', '.join(near)}" if near else f"it has {', '.join(tags[:10]) or 'none at all'}"
    raise BadInput(
        f"{name}: the Docker engine has no such image; {listed}",
        fix="docker images lists them" if tags else "docker pull, docker load or toolkit image build",
    )


def size_of(image: "Image") -> int:
    """Return the bytes of an image's files, about what it takes when it is saved."""
    return int(image.attrs.get("Size") or 0)


def save(client: "DockerClient", image: "Image", file: BinaryIO) -> int:
    """Write an image as a docker-archive; return its bytes.

    Raises:
        CheckFailed: if the engine sends far more than the image has.
        Missing: if the engine stops answering.
    """
    most, size = 2 * size_of(image) + _SPARE, 0
    for chunk in saved(client, str(image.id)):
        size += len(chunk)
        if size > most:
            raise CheckFailed(
                f"the Docker engine sends more than the {most >> 20} MiB that {image.id} can have"
            )
        file.write(chunk)
    file.flush()
    return size


def load(client: "DockerClient", archive: Path, identity: str, name: str) -> None:
    """Bring an image from an archive of docker save into the engine and name it, unless it is there.

    Raises:
        CheckFailed: if the archive holds another image than ``identity``.
        Missing: if the engine stops answering.
    """
    if find_image(client, identity) is None:
        with speaking(f"loading {name}"), archive.open("rb") as file:
            client.images.load(file)
        if find_image(client, identity) is None:
            raise CheckFailed(f"{archive}: it does not hold {name}", fix="make the bundle again")
    kept = find_image(client, name)
    if kept is None or kept.id != identity:
        tag_image(client, identity, name)


def load_archive(client: "DockerClient", archive: Path) -> str:
    """Bring the one image of an archive into the engine; return its id.

    Raises:
        CheckFailed: if the engine does not take it, or there are several.
    """
    with speaking(f"loading {archive.name}"), archive.open("rb") as file:
        found = {image.id for image in client.images.load(file)}
    if len(found) != 1:
        raise CheckFailed(f"{archive}: {len(found)} images are in it, and one is wanted")
    return str(found.pop())
