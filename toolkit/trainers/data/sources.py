"""Sources of samples: arrays in memory, or an object that returns one sample by its number."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


@runtime_checkable
class Source(Protocol):
    """Samples that a training step reads or generates when the step needs them."""

    def __len__(self) -> int: ...

    def item(self, number: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return sample ``number``, counted from 0: its input, of a fixed shape, and its class as an int32.

        ``number`` does not restart at 0 in later epochs. With N samples, number N + 2 is sample 2 in the
        second epoch. A random crop that depends on ``number`` differs between epochs. This method is
        TensorFlow graph code, which TensorFlow runs for many samples at once in several threads.
        """


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples in memory: unscaled inputs, such as image bytes, and their classes. The model scales the
    inputs.
    """

    inputs: "numpy.ndarray"
    classes: "numpy.ndarray"

    def __len__(self) -> int:
        return len(self.classes)


Data = Source | Samples
