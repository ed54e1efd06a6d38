"""Add one layer with toolkit's trainers to an image; the image's own files stay unchanged."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolkit import __version__
from toolkit.data import package
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import require_own, write_whole
from toolkit.image.builds.context import trainers
from toolkit.model.facts import ImageFacts
from toolkit.model.progress import Tell
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.engine import BuildOptions, build_image, build_memory, forget_image, tag_image
from toolkit.run.docker.engine_images import named_image
from toolkit.versions import OLDEST_PYTHON, older

if TYPE_CHECKING:
    from docker import DockerClient

_SECONDS = 900.0
_TRIAL_SECONDS = 120.0
_KEPT_LINES = 12
_STILL = "or use your image without the trainers, for your own programs"
_TEXT = "Dockerfile"
_MARK = "# The trainers of toolkit "
"""The start of each generated Dockerfile. toolkit overwrites a folder only if its Dockerfile starts with this
text."""
_DOCKERFILE = """\
{mark}{version} on {name}, which toolkit did not build.
FROM {identity}
USER root
COPY lib/ /opt/toolkit/lib/
RUN command -v python > /dev/null || ln -s "$(command -v python3)" /usr/local/bin/python
ENV PYTHONPATH="/opt/toolkit/lib${{PYTHONPATH:+:$PYTHONPATH}}"
LABEL toolkit="adopted" toolkit.version="{version}" toolkit.adopted="{identity}"
USER {user}
"""


class Layered(msgspec.Struct, frozen=True, kw_only=True):
    """An image with an added layer. ``base`` is the ID of the image to which toolkit added the layer."""

    schema: str = "toolkit.layered/1"
    tag: str
    id: str
    base: str


def context(name: str, identity: str, user: str) -> dict[str, bytes | Path]:
    """Return a Dockerfile that adds the trainers to an image, and the files that the Dockerfile copies.

    ``name`` is the image's name in the comment of the Dockerfile. ``identity`` is the image's ID, or its name
    with a digest. ``user`` is the user in the image's configuration; an empty text means root.
    """
    shown = re.sub(r"[^\x21-\x7e]+", " ", name)
    text = _DOCKERFILE.format(
        mark=_MARK, version=__version__, name=shown, identity=identity, user=user or "root"
    )
    return {
        _TEXT: text.encode(),
        "lib/toolkit/__init__.py": (package() / "__init__.py").read_bytes(),
        **{f"lib/toolkit/trainers/{name}": content for name, content in trainers().items()},
    }


def require_python(facts: ImageFacts, name: str) -> None:
    """Check that the image's Python can run the trainers. If the version of Python is unknown, the check
    succeeds. ``name`` is the image's name in the error message.

    Raises:
        BadInput: if the image's Python is too old.
    """
    if older(facts.python, OLDEST_PYTHON):
        raise BadInput(
            f"{name}: its Python is {facts.python} ({facts.cite('python')}), but the trainers need "
            f"{OLDEST_PYTHON} or later",
            fix="build an image from a recipe that `toolkit image list` shows: `toolkit image build RECIPE`; "
            + _STILL,
        )


def require_folder(folder: Path, fix: str) -> None:
    """Check that toolkit may write a build context to a folder.

    toolkit writes to a folder only if the folder does not exist, is empty, or contains a build context that
    toolkit wrote earlier.

    Raises:
        BadInput: if toolkit must not write to the folder; ``fix`` is the hint of the error message.
    """
    empty = folder.is_dir() and not any(folder.iterdir())
    if not empty and not os.path.lexists(folder / _TEXT):
        require_own(folder, _MARK, fix)
    require_own(folder / _TEXT, _MARK, fix)


def write(files: Mapping[str, bytes | Path], folder: Path) -> None:
    """Write a build context to a folder, so that users can read the Dockerfile and build the image
    themselves.
    """
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content if isinstance(content, bytes) else content.read_bytes())


def layer(client: "DockerClient", name: str, tag: str, folder: Path, tell: Tell) -> Layered:
    """Add the trainers to the image ``name`` in the Docker engine, and give the new image the tag ``tag``.
    The build context remains in ``folder``.

    Raises:
        BadInput: if the engine has no image with that name.
        CheckFailed: if a build step fails or Python cannot import the trainers; the new image then gets no
            tag.
    """
    below = named_image(client, name)
    user = str((below.attrs.get("Config") or {}).get("User") or "")
    files = context(name, str(below.id), user if re.fullmatch(r"[A-Za-z0-9_.:-]*", user) else "")
    write(files, folder)
    tell.step(f"Adding the trainers to {name}")
    options = BuildOptions(memory=build_memory(client), timeout=_SECONDS, network="none")
    image = build_image(client, files, tag, tell, options)
    try:
        _try(client, image, name, tell)
    except BaseException:
        forget_image(client, image)
        raise
    tag_image(client, image, tag)
    return Layered(tag=tag, id=image, base=str(below.id))


def _try(client: "DockerClient", image: str, name: str, tell: Tell) -> None:
    words = ("python", "-c", "import toolkit.trainers.training.train")
    ran = run_once(client, Box(image, timeout=_TRIAL_SECONDS), words, tell.detail)
    if not ran.ok:
        raise CheckFailed(
            f"{name}: Python in the image cannot import the trainers",
            detail=ran.lines[-_KEPT_LINES:],
            fix=f"choose an image with Python {OLDEST_PYTHON} or later, {_STILL}",
        )
