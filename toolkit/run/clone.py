"""Label the Docker objects of a clone's ``make``, so that its ``make clean`` removes only these objects.

The Makefile sets ``TOOLKIT_CLONE`` to the identity of the clone and ``TOOLKIT_MADE`` to a file. Containers,
networks and volumes have the identity as a label. Images are listed in the file instead: a label would change
their digests, which are equal for equal locks on every machine.
"""

import contextlib
import os
from pathlib import Path

LABEL = "toolkit.clone"


def labels() -> dict[str, str]:
    """Return the label of the clone for which this process runs; empty outside ``make``."""
    clone = os.environ.get("TOOLKIT_CLONE", "")
    return {LABEL: clone} if clone else {}


def record_image(image: str, name: str) -> None:
    """Record an image that ``make`` in this clone has named; does nothing outside ``make``."""
    if target := os.environ.get("TOOLKIT_MADE"):
        # If the write fails, `make clean` leaves the image in the engine, which is harmless.
        with contextlib.suppress(OSError), Path(target).open("a", encoding="utf-8") as file:
            file.write(f"{image} {name}\n")
