"""Define two trainers with few images: a dense network for 20 steps, and a residual network with
augmentation.
"""

import sys
from dataclasses import replace

import numpy as np

from toolkit.trainers import cifar10, mnist
from toolkit.trainers.command import run
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.trainer import nothing


def images(count, seed, shape):
    random = np.random.default_rng(seed)
    classes = random.integers(0, 10, count)
    pixels = random.integers(0, 60, (count, *shape)) + 18 * classes.reshape(-1, *[1] * len(shape))
    return Samples(pixels.astype("uint8"), classes.astype("uint8"))


def dense(_):
    return images(640, 1, (28, 28)), images(100, 2, (28, 28))


def coloured(_):
    return images(500, 1, (32, 32, 3)), images(100, 2, (32, 32, 3))


TRAINERS = {
    "dense": replace(
        mnist.TRAINER, name="small", load=dense, data="", check=nothing, passes="shared", epochs=1
    ),
    "residual": replace(
        cifar10.TRAINER, name="small-residual", load=coloured, data="", check=nothing, epochs=2
    ),
}

if __name__ == "__main__":
    run(TRAINERS[sys.argv[1]], sys.argv[2:])
