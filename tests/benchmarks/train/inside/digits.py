"""Read MNIST's files."""

from pathlib import Path

import numpy as np


def part(folder, name):
    """Return the images as floats from 0 to 1, of shape (count, 28, 28), and the digits.

    ``name`` is ``train`` or ``t10k``.
    """
    images = np.frombuffer((Path(folder) / f"{name}-images-idx3-ubyte").read_bytes()[16:], np.uint8)
    digits = np.frombuffer((Path(folder) / f"{name}-labels-idx1-ubyte").read_bytes()[8:], np.uint8)
    return images.reshape(-1, 28, 28) / 255.0, digits.astype("int64")
