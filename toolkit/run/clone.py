"""Label everything that a clone's ``make`` creates in the Docker engine, so that its ``make clean`` removes
nothing else.

The Makefile sets ``TOOLKIT_CLONE`` to the identity of the clone and ``TOOLKIT_MADE`` to a file. Containers,
networks and volumes carry the identity as a label. Images are listed in the file: a label would change their
digests, which are the same for equal locks on every machine.
"""

import contextlib
import os
from pathlib import Path

LABEL = "toolkit.clone"


def labels() -> dict[str, str]:
    """Return the label of the clone that this process works for; empty outside ``make``."""
    clone = os.environ.get("TOOLKIT_CLONE", "")
    return {LABEL: clone} if clone else {}


def record_image(image: str, name: str) -> None:
    """Record that ``make`` in this clone named an image in the engine; does nothing outside ``make``."""
    if target := os.environ.get("TOOLKIT_MADE"):
        # If the file cannot be written, the image stays in the engine after `make clean`, which is harmless.
        with contextlib.suppress(OSError), Path(target).open("a", encoding="utf-8") as file:
            file.write(f"{image} {name}\n")
