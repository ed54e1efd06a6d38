"""Label the Docker objects that ``make`` creates in a clone of the repository, so that ``make clean`` removes
only the objects of this clone.

The script ``scripts/clone.sh`` sets ``TOOLKIT_CLONE`` to a random number, the clone's identity. The script
sets ``TOOLKIT_MADE`` to the path of a file that lists images. Containers, networks and volumes get the
clone's identity as a label. Images get no label, because a label changes an image's digest, and equal lock
files must give equal digests in every clone. Instead, toolkit adds the IDs and names of images to the file
that ``TOOLKIT_MADE`` names.
"""

import contextlib
import os
from pathlib import Path

LABEL = "toolkit.clone"


def labels() -> dict[str, str]:
    """Return the label for Docker objects that this process creates. If ``make`` did not start this process,
    the result is empty.
    """
    clone = os.environ.get("TOOLKIT_CLONE", "")
    return {LABEL: clone} if clone else {}


def record_image(image: str, name: str) -> None:
    """Record the ID and name of an image that ``make`` created. If ``make`` did not start this process, do
    nothing.
    """
    if target := os.environ.get("TOOLKIT_MADE"):
        # If the write fails, `make clean` leaves the image in the engine. This image wastes disk space, but
        # does no other harm.
        with contextlib.suppress(OSError), Path(target).open("a", encoding="utf-8") as file:
            file.write(f"{image} {name}\n")
