"""Bring the samples whose numbers were dealt to this process to its step, a batch at a time."""

from typing import TYPE_CHECKING, Any, Protocol

from toolkit.trainers.data.sources import Data, Samples, Source

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


Portion = Any
"""Some steps of a table: samples' numbers, a row a step, or an iterator that gives their batches."""


class Feed(Protocol):
    """Tables of samples' numbers, a row a step, as arguments of a compiled function, and back as batches."""

    signature: Any
    """What the compiled function takes first: the specification of a portion."""

    def open(self, table: "numpy.ndarray", turn: int = 0) -> "Portions":
        """Begin with a table, in an epoch that follows ``turn`` others."""

    def batch(self, portion: Portion, step: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return the inputs and classes of a step of the portion; steps are asked for in their order."""

    def waited(self) -> float | None:
        """Return for how many seconds steps have waited for their batches; ``None`` where nobody knows."""


class Portions(Protocol):
    """One table, to be taken in portions of steps."""

    def take(self, start: int, stop: int) -> Portion:
        """Return what the compiled function takes for the steps from ``start`` up to ``stop``."""


class InMemory:
    """Samples that lie in the host's memory, where a batch of them is gathered.

    TensorFlow gathers bytes on no GPU: from there all samples would be brought back for each batch.
    """

    def __init__(self, samples: Samples) -> None:
        import tensorflow as tf

        with tf.device("/CPU:0"):
            self._inputs = tf.constant(samples.inputs)
            self._classes = tf.constant(samples.classes, tf.int32)
        self.signature = tf.TensorSpec((None, None), tf.int32)

    def open(self, table: "numpy.ndarray", turn: int = 0) -> "NumberTable":
        return NumberTable(table)

    def batch(self, portion: "tf.Tensor", step: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        import tensorflow as tf

        with tf.device("/CPU:0"):
            row = portion[step]
            return tf.gather(self._inputs, row), tf.gather(self._classes, row)

    def waited(self) -> float:
        return 0.0


class NumberTable:
    """A table of numbers in memory."""

    def __init__(self, table: "numpy.ndarray") -> None:
        self._table = table

    def take(self, start: int, stop: int) -> "numpy.ndarray":
        return self._table[start:stop]


class Streamed:
    """Samples that are read or made one by one, by several threads and ahead of the step that needs them."""

    def __init__(self, source: Source) -> None:
        import tensorflow as tf

        self._source = source
        one = tf.data.Dataset.from_tensors(tf.constant(0, tf.int32)).map(source.item)
        specs = [tf.TensorSpec((None, *spec.shape), spec.dtype) for spec in one.element_spec]
        self.signature = tf.data.IteratorSpec(tuple(specs))
        with tf.device("/CPU:0"):
            self._waited = tf.Variable(0.0, trainable=False, dtype=tf.float64)

    def open(self, table: "numpy.ndarray", turn: int = 0) -> "Stream":
        return Stream(self._source, table, turn)

    def batch(self, portion: Portion, step: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        import tensorflow as tf

        # A step begins when the one before it has ended, so that what this takes is time without work.
        with tf.device("/CPU:0"):
            with tf.control_dependencies([step]):
                begun = tf.timestamp()
            with tf.control_dependencies([begun]):
                inputs, classes = next(portion)
            with tf.control_dependencies([inputs, classes]):
                self._waited.assign_add(tf.timestamp() - begun)
        return inputs, classes

    def waited(self) -> float:
        return float(self._waited)


class Stream:
    """A table whose samples are on their way."""

    def __init__(self, source: Source, table: "numpy.ndarray", turn: int = 0) -> None:
        import tensorflow as tf

        numbers = tf.data.Dataset.from_tensor_slices(table.reshape(-1).astype("int32") + turn * len(source))
        one_by_one = numbers.map(source.item, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        self._batches = iter(one_by_one.batch(table.shape[1]).prefetch(tf.data.AUTOTUNE))

    def take(self, start: int, stop: int) -> Portion:
        """Return the rest of the stream: its portions are taken in their order."""
        return self._batches


def feed(data: Data) -> Feed:
    """Return how the samples of ``data`` come to the step."""
    return InMemory(data) if isinstance(data, Samples) else Streamed(data)
