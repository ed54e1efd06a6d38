"""Make the images and data that the smoke tests need; ``make test`` does this while checks and unit tests
run."""

import os
import sys
from pathlib import Path

from tests.services.program import ROOT, toolkit
from tests.services.workers import one_at_a_time
from toolkit.cluster.flavour import default_flavour
from toolkit.cluster.image import ensure_image
from toolkit.model.progress import Silent
from toolkit.run.docker.engine import connect

RECIPE = os.environ.get("RECIPE", "") or "tf2.15-cpu"
"""``make test-trainers RECIPE=tf2.21-cpu`` tests the image of another recipe."""
IMAGE = f"toolkit/{RECIPE}:latest"


def training_image(recipe: str = RECIPE) -> None:
    """Build the image of a recipe, or do nothing if the image exists."""
    toolkit("image", "build", recipe, timeout=3600)


def training_sif(recipe: str = RECIPE) -> Path:
    """Return the SIF of a recipe; SIF and image are built again only if their lock has changed."""
    sif = ROOT / "build" / "images" / f"{recipe}.sif"
    with one_at_a_time(recipe):
        training_image(recipe)
        toolkit("image", "sif", recipe, "-o", str(sif), timeout=900)
    return sif


def mnist() -> None:
    with one_at_a_time("mnist"):
        toolkit("data", "get", "mnist")


def main() -> None:
    """Make the nodes' image, the training image with its SIF, and the data."""
    client = connect()
    try:
        ensure_image(client, default_flavour(), Silent())
    finally:
        client.close()
    training_sif()
    mnist()


if __name__ == "__main__":
    sys.exit(main())
