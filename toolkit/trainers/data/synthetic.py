"""Random samples of any shape and number, for benchmarks and for tests without a data set."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.trainers.data.sources import Samples

if TYPE_CHECKING:
    import tensorflow as tf

_MOST = 1 << 30
"""The largest total size in bytes of the random samples that :func:`samples` returns. :class:`Synthetic` has
no size limit, because it does not store samples.
"""


def samples(shape: tuple[int, ...], classes: int, count: int, seed: int = 1) -> Samples:
    """Return ``count`` samples in memory: random bytes of shape ``shape``, and random classes from 0 to
    ``classes`` - 1.

    Raises:
        ValueError: if the samples need more than 1 GiB.
    """
    import numpy as np

    if count * math.prod(shape) > _MOST:
        raise ValueError(
            f"{count} samples of shape {shape} need more than {_MOST} bytes; use the class Synthetic"
        )
    random = np.random.default_rng(seed)
    return Samples(random.integers(0, 256, (count, *shape), np.uint8), random.integers(0, classes, count))


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Random samples that toolkit generates only when a training step needs them. A sample has the same
    content in each epoch.
    """

    shape: tuple[int, ...]
    classes: int
    count: int
    seed: int = 1

    def __len__(self) -> int:
        return self.count

    def item(self, number: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return one sample: random bytes of shape ``shape``, and a random class. With N samples,
        ``number`` N + 2 is sample 2 in the second epoch.
        """
        import tensorflow as tf

        draw = tf.stack([self.seed, number % self.count])
        values = tf.random.stateless_uniform(self.shape, draw, 0, 256, tf.int32)
        named = tf.random.stateless_uniform((), draw + 1, 0, self.classes, tf.int32)
        return tf.cast(values, tf.uint8), named
