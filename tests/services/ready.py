"""Prepare the images and the data of the smoke tests."""

import os
import sys
from pathlib import Path

from tests.services.program import ROOT, toolkit
from tests.services.workers import one_at_a_time
from toolkit.cluster.flavour import default_flavour
from toolkit.cluster.image import ensure_image
from toolkit.launch.request.layers import DEFAULTS
from toolkit.model.progress import Silent
from toolkit.run.docker.engine import connect

RECIPE = os.environ.get("RECIPE", "") or str(DEFAULTS.image)
"""Name of the tested recipe. For example, ``make test-trainers RECIPE=tf2.15-cpu`` changes it."""
IMAGE = f"toolkit/{RECIPE}:latest"


def training_image(recipe: str = RECIPE) -> None:
    toolkit("image", "build", recipe, timeout=3600)


def training_sif(recipe: str = RECIPE) -> Path:
    sif = ROOT / "build" / "images" / f"{recipe}.sif"
    with one_at_a_time(recipe):
        training_image(recipe)
        toolkit("image", "sif", recipe, "-o", str(sif), timeout=900)
    return sif


def mnist() -> None:
    with one_at_a_time("mnist"):
        toolkit("data", "get", "mnist")


def main() -> None:
    """Prepare the image of the cluster's nodes, the training image with its SIF, and the data sets."""
    client = connect()
    try:
        ensure_image(client, default_flavour(), Silent())
    finally:
        client.close()
    training_sif()
    mnist()


if __name__ == "__main__":
    sys.exit(main())
