"""Where samples come from: arrays in memory, or anything that can give one sample by its number."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


@runtime_checkable
class Source(Protocol):
    """Samples that are read or made when they are needed."""

    def __len__(self) -> int: ...

    def item(self, number: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return one sample, the first being 0: its input, of a fixed shape, and its class as an int32.

        Numbers go on in each later epoch: with N samples, N + 2 is sample 2 in the second one, so that what
        is random about it can be drawn from its number. This is TensorFlow's graph code, and is called for
        many samples at once, on several threads.
        """


@dataclass(frozen=True, slots=True)
class Samples:
    """Inputs as they are stored (the model scales them) and their classes, all in memory."""

    inputs: "numpy.ndarray"
    classes: "numpy.ndarray"

    def __len__(self) -> int:
        return len(self.classes)


Data = Source | Samples
