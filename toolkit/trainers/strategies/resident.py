"""Pass samples to the workers of the strategy ``ps``.

If the samples are in memory, the coordinator sends all samples to each worker once, at the start. Later, the
coordinator sends only the sample numbers (indices into the data set) for the next training steps.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.trainers.data.sources import Data, Samples

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


class Resident:
    """A feed for the workers (see :class:`toolkit.trainers.data.feed.Feed`). If the data are ``Samples``,
    each worker keeps all samples in memory. Otherwise, each worker reads or generates samples when a training
    step needs them.
    """

    def __init__(self, data: Data, coordinator: Any) -> None:  # noqa: ANN401 - from TensorFlow
        import tensorflow as tf

        self._data = data
        self._held: tuple[Any, ...] = ()
        rows = tf.TensorSpec((None, None), tf.int32)
        if not isinstance(data, Samples):
            self.signature: Any = (rows,)
            return
        parts = tf.constant(data.inputs), tf.constant(data.classes, tf.int32)
        # Use a private method, because TensorFlow's public method gives each worker a fixed set of samples.
        hold = coordinator._create_per_worker_resources  # noqa: SLF001
        self._held = tuple(hold(tf.function(partial(tf.identity, one))) for one in parts)
        # The signature must have the names of the workers' tensors.
        # The tensors in ``parts`` have other names.
        specs = [one._values[0]._type_spec for one in self._held]  # noqa: SLF001
        self.signature = (*specs, rows)

    def open(self, table: "numpy.ndarray", epoch: int = 0) -> "Numbers":
        return Numbers(self._held, table)

    def batch(self, portion: Any, step: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":  # noqa: ANN401
        import tensorflow as tf

        row = portion[-1][step]
        if isinstance(self._data, Samples):
            inputs, classes, _ = portion
            return tf.gather(inputs, row), tf.gather(classes, row)
        numbers = tf.data.Dataset.from_tensor_slices(row)
        one_by_one = numbers.map(self._data.item, num_parallel_calls=tf.data.AUTOTUNE)
        inputs, classes = one_by_one.batch(tf.size(row, out_type=tf.int64)).get_single_element()
        return inputs, classes

    def waited(self) -> float | None:
        return 0.0 if isinstance(self._data, Samples) else None


class Numbers:
    """A table of sample numbers with one row per training step. In each step, each worker trains on
    the samples in one part of the step's row.
    """

    def __init__(self, tensors: tuple[Any, ...], table: "numpy.ndarray") -> None:
        self._held, self._table = tensors, table

    def take(self, start: int, stop: int) -> "Numbers":
        return Numbers(self._held, self._table[start:stop])

    def part(self, start: int, stop: int, worker: int, workers: int) -> tuple[Any, ...]:
        """Return the arguments of a worker's training function for the steps ``start`` to ``stop`` - 1.

        If the workers cannot share the columns of the table equally, the first workers get one sample more
        per step than the other workers.
        """
        each, more = divmod(self._table.shape[1], workers)
        first = worker * each + min(worker, more)
        return (*self._held, self._table[start:stop, first : first + each + (worker < more)])
