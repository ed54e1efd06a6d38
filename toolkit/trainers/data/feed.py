"""Pass the samples that this process was assigned to its steps, a batch at a time."""

from typing import TYPE_CHECKING, Any, Protocol

from toolkit.trainers.data.sources import Data, Samples, Source

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


Portion = Any
"""Some steps of a table: sample numbers with a row for each step, or an iterator over their batches."""


class Feed(Protocol):
    """Converts tables of sample numbers to arguments of a compiled function, and back to batches."""

    signature: Any
    """The first argument of the compiled function: the specification of a portion."""

    def open(self, table: "numpy.ndarray", turn: int = 0) -> "Portions":
        """Start a table in the epoch after ``turn`` epochs."""

    def batch(self, portion: Portion, step: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return the inputs and classes of a step of the portion; steps come in order."""

    def waited(self) -> float | None:
        """Return for how many seconds steps have waited for their batches; ``None`` if unknown."""


class Portions(Protocol):
    """One table, which is read in portions of steps."""

    def take(self, start: int, stop: int) -> Portion:
        """Return the argument of the compiled function for the steps from ``start`` up to ``stop``."""


class InMemory:
    """Samples in the host's memory; the host also gathers the batches.

    TensorFlow does not gather bytes on a GPU: it would copy all samples back for each batch.
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
    """Samples that several threads read or generate ahead of the step that needs them."""

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

        # A step starts after the previous step, so the time spent here is time without computation.
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
    """A table whose samples are being read."""

    def __init__(self, source: Source, table: "numpy.ndarray", turn: int = 0) -> None:
        import tensorflow as tf

        numbers = tf.data.Dataset.from_tensor_slices(table.reshape(-1).astype("int32") + turn * len(source))
        one_by_one = numbers.map(source.item, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        self._batches = iter(one_by_one.batch(table.shape[1]).prefetch(tf.data.AUTOTUNE))

    def take(self, start: int, stop: int) -> Portion:
        """Return the rest of the stream; its portions must be read in order."""
        return self._batches


def feed(data: Data) -> Feed:
    """Return the feed that passes the samples of ``data`` to the steps."""
    return InMemory(data) if isinstance(data, Samples) else Streamed(data)
