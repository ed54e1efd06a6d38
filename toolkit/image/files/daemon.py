"""Copy an image from the Docker engine into an unnamed temporary file."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from toolkit.data import cache_dir
from toolkit.errors import Missing
from toolkit.model.progress import Tell
from toolkit.units import format_size

_SECONDS = 900
"""The timeout in seconds for a response of the Docker engine. The timeout is long, because the engine may
write the whole image to its disk before it sends the first byte.
"""


@contextmanager
def open_engine_image(name: str, tell: Tell) -> Iterator[BinaryIO]:
    """Open an image of the Docker engine as an archive in the format of ``docker save``.

    toolkit stores the archive in a temporary file in toolkit's cache folder, because ``/tmp`` may have too
    little space for an image.

    Raises:
        BadInput: if the Docker engine has no image with this name.
        Missing: if no Docker engine responds, or toolkit cannot write the archive to the cache folder.
    """
    from toolkit.run.docker.engine import connect
    from toolkit.run.docker.engine_images import named_image, save, size_of

    with closing(connect(timeout=_SECONDS)) as client:
        image = named_image(client, name)
        size = size_of(image)
        with _file(cache_dir(), size) as file:
            tell.step(f"Copying {name} from the Docker engine ({format_size(size)})")
            try:
                save(client, image, file)
            except OSError as error:
                raise _no_room(cache_dir(), error.strerror) from error
            tell.step(f"Reading {name}")
            yield file


def _file(folder: Path, size: int) -> BinaryIO:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if free >= size:
            return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise _no_room(folder, error.strerror) from error
    raise _no_room(folder, f"{format_size(free)} are free, {format_size(size)} are needed")


def _no_room(folder: Path, reason: str | None) -> Missing:
    return Missing(
        f"{folder}: {reason}", fix="set TOOLKIT_CACHE_DIR to a folder on a disk with space for the image"
    )
