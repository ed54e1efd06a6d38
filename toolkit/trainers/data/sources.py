"""Sources of samples: arrays in memory, or an object that returns one sample by its number."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


@runtime_checkable
class Source(Protocol):
    """Samples that a step reads or generates when it needs them."""

    def __len__(self) -> int: ...

    def item(self, number: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return sample ``number``, counted from 0: its input, of a fixed shape, and its class as an int32.

        The number does not start again at 0 in later epochs. With N samples, number N + 2 is sample 2 in the
        second epoch. A random crop can therefore depend on the number, so that the crop differs between
        epochs. This method is TensorFlow graph code, which TensorFlow runs for many samples at once in
        several threads.
        """


@dataclass(frozen=True, slots=True)
class Samples:
    """Unscaled inputs and their classes, all in memory; the model scales the inputs."""

    inputs: "numpy.ndarray"
    classes: "numpy.ndarray"

    def __len__(self) -> int:
        return len(self.classes)


Data = Source | Samples
