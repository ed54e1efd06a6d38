"""Pass this rank's samples to the training steps, one batch at a time.

A *compiled training function* is a TensorFlow function that makes several training steps in one call.
"""

from typing import TYPE_CHECKING, Any, Protocol

from toolkit.trainers.data.sources import Data, Samples, Source

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


Portion = Any
"""The input of several consecutive training steps. :class:`InMemory` uses a table of sample numbers with one
row per step. :class:`Streamed` uses an iterator over batches.
"""


class Feed(Protocol):
    """Prepares the input of the compiled training function. :meth:`open` gets a table of sample numbers.
    Before each call of the function, :meth:`Portions.take` makes an argument from some rows of the table.
    Inside the function, :meth:`batch` makes batches from this argument.
    """

    signature: Any
    """TensorFlow's specification of the compiled function's first argument, a :data:`Portion`."""

    def open(self, table: "numpy.ndarray", epoch: int = 0) -> "Portions":
        """Start reading the samples whose numbers ``table`` contains, with one row per training step.
        ``epoch`` is the number of the epoch, counted from 0.
        """

    def batch(self, portion: Portion, step: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return the inputs and classes for one training step. ``portion`` is the input of several steps, and
        ``step`` is the index of one of these steps. Call this method for step 0 first, then for step 1, and
        so on.
        """

    def waited(self) -> float | None:
        """Return the total time in seconds that all steps so far waited for data, or ``None`` if unknown."""


class Portions(Protocol):
    """The input for a table of sample numbers with one row per training step. A training loop takes the
    input of several rows at a time.
    """

    def take(self, start: int, stop: int) -> Portion:
        """Return the input of the rows ``start`` to ``stop`` - 1. The caller passes this input as an argument
        to the compiled training function.
        """


class InMemory:
    """Samples in the memory of the host, from which the CPU gathers each batch.

    TensorFlow does not gather bytes on a GPU. If the samples were in GPU memory, TensorFlow would copy all
    samples to the CPU for each batch.
    """

    def __init__(self, samples: Samples) -> None:
        import tensorflow as tf

        with tf.device("/CPU:0"):
            self._inputs = tf.constant(samples.inputs)
            self._classes = tf.constant(samples.classes, tf.int32)
        self.signature = tf.TensorSpec((None, None), tf.int32)

    def open(self, table: "numpy.ndarray", epoch: int = 0) -> "NumberTable":
        return NumberTable(table)

    def batch(self, portion: "tf.Tensor", step: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        import tensorflow as tf

        with tf.device("/CPU:0"):
            row = portion[step]
            return tf.gather(self._inputs, row), tf.gather(self._classes, row)

    def waited(self) -> float:
        return 0.0


class NumberTable:
    """A table of sample numbers in memory."""

    def __init__(self, table: "numpy.ndarray") -> None:
        self._table = table

    def take(self, start: int, stop: int) -> "numpy.ndarray":
        return self._table[start:stop]


class Streamed:
    """Samples that several threads read or generate in advance, before a training step needs them."""

    def __init__(self, source: Source) -> None:
        import tensorflow as tf

        self._source = source
        one = tf.data.Dataset.from_tensors(tf.constant(0, tf.int32)).map(source.item)
        specs = [tf.TensorSpec((None, *spec.shape), spec.dtype) for spec in one.element_spec]
        self.signature = tf.data.IteratorSpec(tuple(specs))
        with tf.device("/CPU:0"):
            self._waited = tf.Variable(0.0, trainable=False, dtype=tf.float64)

    def open(self, table: "numpy.ndarray", epoch: int = 0) -> "Stream":
        return Stream(self._source, table, epoch)

    def batch(self, portion: Portion, step: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        import tensorflow as tf

        # Measure how long this step waits for its batch, because the training device is idle meanwhile.
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
    """The batches for a table of sample numbers, one batch per row. TensorFlow reads the batches in the
    background.
    """

    def __init__(self, source: Source, table: "numpy.ndarray", epoch: int = 0) -> None:
        import tensorflow as tf

        numbers = tf.data.Dataset.from_tensor_slices(table.reshape(-1).astype("int32") + epoch * len(source))
        one_by_one = numbers.map(source.item, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        self._batches = iter(one_by_one.batch(table.shape[1]).prefetch(tf.data.AUTOTUNE))

    def take(self, start: int, stop: int) -> Portion:
        """Return an iterator over all batches that the caller has not read yet. ``start`` and ``stop`` have
        no effect, because an iterator returns the batches only in order.
        """
        return self._batches


def feed(data: Data) -> Feed:
    """Return a feed for ``data``. For :class:`Samples`, the feed holds all samples in memory. For a
    :class:`Source`, the feed reads or generates samples in background threads.
    """
    return InMemory(data) if isinstance(data, Samples) else Streamed(data)
