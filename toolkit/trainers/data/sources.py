"""The two kinds of training data: arrays in memory, or an object that returns each sample by its number."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


@runtime_checkable
class Source(Protocol):
    """Samples that toolkit reads or generates only when a training step needs them."""

    def __len__(self) -> int: ...

    def item(self, number: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return the input and the class of a sample. The input has the same shape for all samples. The class
        is an int32.

        ``number`` counts the samples of all epochs from 0. With N samples, number N + 2 is sample 2 in the
        second epoch. A random crop that depends on ``number`` therefore differs between epochs. This method
        is TensorFlow graph code, which TensorFlow runs for many samples at once in several threads.
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
