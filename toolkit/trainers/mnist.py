"""The dense network of the classic tutorial, on MNIST: ``python -m toolkit.trainers.mnist``.

With ``--epochs 4``, each of N ranks trains ceil(4 / N) epochs, over as many samples as the data set has. So
two ranks train two epochs each and see every image four times together, as in the tutorial. But the
tutorial's ranks each shuffle independently; these ranks divide one shuffle after the other, and no image
repeats before every image was used once (see :mod:`toolkit.trainers.data.shares`). Dividing one pass for each
epoch would halve the steps: measured with three seeds, two such epochs reach a test accuracy of 0.9715 to
0.9773, and two epochs of this trainer 0.9769 to 0.9803.
"""

from functools import partial
from pathlib import Path

from toolkit.trainers.command import run
from toolkit.trainers.data import idx
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.models import jaxnetworks, networks, torchnetworks
from toolkit.trainers.trainer import Network, Trainer
from toolkit.trainers.trouble import Trouble

SIDE = 28
CLASSES = 10


def check(folder: Path) -> None:
    """Check the headers and sizes of the four files.

    Raises:
        Trouble: naming the file that is wrong.
    """
    for part in ("train", "t10k"):
        images, labels = _files(folder, part)
        count, *sides = idx.shape(images, 3)
        (named,) = idx.shape(labels, 1)
        if sides != [SIDE, SIDE]:
            raise Trouble(f"{images}: the images are {sides[0]} x {sides[1]}, and not {SIDE} x {SIDE}")
        if count != named or not count:
            raise Trouble(f"{labels}: holds {named} labels for the {count} images of {images.name}")


def load(folder: Path) -> tuple[Samples, Samples]:
    """Return the images, as bytes, and their digits: 60,000 for training and 10,000 for testing."""
    return _part(folder, "train"), _part(folder, "t10k")


def _files(folder: Path, part: str) -> tuple[Path, Path]:
    return folder / f"{part}-images-idx3-ubyte", folder / f"{part}-labels-idx1-ubyte"


def _part(folder: Path, part: str) -> Samples:
    images, labels = _files(folder, part)
    digits = idx.read(labels, 1)
    if digits.max() >= CLASSES:
        raise Trouble(f"{labels}: holds the label {digits.max()}, and digits end at 9; {idx.FIX}")
    return Samples(idx.read(images, 3), digits)


TRAINER = Trainer(
    "mnist",
    partial(networks.dense, SIDE, CLASSES),
    load,
    data="mnist",
    check=check,
    epochs=4,
    batch_size=32,
    learning=Learning(learning_rate=0.001),
    networks={
        "pytorch": Network(partial(torchnetworks.dense, SIDE, CLASSES)),
        "jax": Network(partial(jaxnetworks.dense, SIDE, CLASSES)),
    },
    passes="each",
)

if __name__ == "__main__":
    run(TRAINER)
