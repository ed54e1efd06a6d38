"""The computation: many steps as one compiled function, so that Python is left every few seconds."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.trainers.checkpoint import Part
from toolkit.trainers.shares import share
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.world import World

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf

_EVALUATION_BATCH = 1000
_SLICE_SECONDS = 2.0
"""How long a job that is asked to stop may take to notice."""

_FIRST_SLICE = 32
"""Steps after which it is known how long one takes."""

Pause = Callable[[Part, int], int]
"""What is done between two slices: given how far the epoch is and the steps of the next one as this rank
would have them, it returns the steps that all ranks make. It may end the training by an exception."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Inputs as they are stored (the model scales them) and their classes."""

    inputs: "numpy.ndarray"
    classes: "numpy.ndarray"

    def __len__(self) -> int:
        return len(self.classes)


@dataclass(frozen=True, slots=True)
class Score:
    """Mean loss of a sample and share of right answers, over all ranks."""

    loss: float
    accuracy: float


class Loop:
    """Trains a model on this rank's share of the samples, in step with all other ranks."""

    def __init__(
        self, model: "tf.keras.Model", samples: Samples, world: World, *, batch: int, rate: float, seed: int
    ) -> None:
        """Compile the loop and start all ranks from the variables of rank 0.

        ``rate`` is that of one rank: a step uses ``world.size`` times as many samples, and in the mean of
        their gradients as many times less noise, so it goes that much further (Goyal et al. 2017,
        arXiv:1706.02677).
        """
        import tensorflow as tf

        self.model = model
        self._count, self._world, self._batch, self._seed = len(samples), world, batch, seed
        # The legacy Adam updates a variable by one fused kernel, the new one by a dozen operations.
        optimizer = world.distribute(tf.keras.optimizers.legacy.Adam(rate * world.size))
        self._train = _training(model, optimizer, samples)
        self._score = _scoring(model)
        # Tracing makes the optimizer's variables too, so that they are there to be broadcast.
        self._train.get_concrete_function()
        self._variables = [*model.variables, *optimizer.variables()]
        self._pace = _FIRST_SLICE
        world.broadcast(self._variables)

    def epoch(self, number: int, passes: int, part: Part, pause: Pause) -> tuple[Score, float]:
        """Train what is left of an epoch, the first being 0; return the mean over all of it, and its seconds.

        Raises:
            Trouble: if the training diverged.
        """
        images = passes * self._count
        for rows, last in self._slices(number, passes, part.images):
            before = part.seconds
            part = self._train_slice(rows, part, images if last else 0)
            if not last:
                # All ranks have to make the same slices: only what they agree on counts.
                self._pace = pause(part, paced(len(rows), part.seconds - before))
        loss, right = self._world.total([part.loss, part.right])
        if not math.isfinite(loss):
            diverged = f"the training diverged in epoch {number + 1}: the loss is no number"
            self._world.agree(Trouble(f"{diverged}; lower --learning-rate", code=1))
        return Score(loss / images, right / images), part.seconds

    def _slices(self, number: int, passes: int, done: int) -> "Iterator[tuple[numpy.ndarray, bool]]":
        """Return tables of a few seconds' steps, and whether one is the last of the epoch."""
        tables = share(
            count=self._count,
            batch=self._batch,
            rank=self._world.rank,
            size=self._world.size,
            epoch=number,
            seed=self._seed,
            passes=passes,
            done=done,
        )
        for table in tables:
            at = 0
            while at < len(table):
                rows = table[at : at + self._pace]
                at += len(rows)
                yield rows, table is tables[-1] and at == len(table)

    def _train_slice(self, rows: "numpy.ndarray", part: Part, images: int) -> Part:
        """Train, and return how far the epoch is then: at ``images``, or further by what all ranks took."""
        begun = time.monotonic()
        # The sums go through the computation, so that they do not depend on where it was cut.
        loss, right = self._train(rows, part.loss, part.right)
        # Asking for a value waits for it: a GPU may not have begun.
        loss, right = float(loss), int(right)
        seconds = time.monotonic() - begun
        return Part(images or part.images + rows.size * self._world.size, loss, right, part.seconds + seconds)

    def state(self) -> "list[numpy.ndarray]":
        """Return what the training has come to: the variables of model and optimizer."""
        return [variable.numpy() for variable in self._variables]

    def restore(self, arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Go on from a state, which rank 0 gives to all.

        Raises:
            Trouble: if it is that of another model.
        """
        trouble = None
        if arrays is not None:
            theirs = [(array.shape, array.dtype.name) for array in arrays]
            ours = [(tuple(one.shape), one.dtype.name) for one in self._variables]
            if theirs == ours:
                for variable, array in zip(self._variables, arrays, strict=True):
                    variable.assign(array)
            else:
                trouble = Trouble("the checkpoint is that of another model; begin anew with --fresh")
        self._world.agree(trouble)
        self._world.broadcast(self._variables)

    def evaluate(self, samples: Samples) -> Score:
        """Score the model on samples that are shared out to the ranks."""
        rank, size = self._world.rank, self._world.size
        inputs, classes = samples.inputs[rank::size], samples.classes[rank::size]
        batches = [slice(at, at + _EVALUATION_BATCH) for at in range(0, len(classes), _EVALUATION_BATCH)]
        sums = [self._score(inputs[one], classes[one]) for one in batches]
        loss = sum(float(one) for one, _ in sums)
        right = sum(float(one) for _, one in sums)
        loss, right, everyone = self._world.total([loss, right, len(classes)])
        return Score(loss / everyone, right / everyone)


def paced(steps: int, seconds: float) -> int:
    """Return how many steps take about two seconds, if ``steps`` took so long.

    The first slices are slower than those that follow, and too short to tell: no more than ten times as many.
    """
    return max(1, min(10 * steps, round(steps * _SLICE_SECONDS / max(seconds, 1e-3))))


def _losses(outputs: "tf.Tensor", classes: "tf.Tensor") -> "tf.Tensor":
    import tensorflow as tf

    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=outputs)


def _right(outputs: "tf.Tensor", classes: "tf.Tensor") -> "tf.Tensor":
    """Count the right answers, as a number that stays exact where a float32 does not."""
    import tensorflow as tf

    hits = tf.argmax(outputs, axis=-1, output_type=tf.int32) == classes
    return tf.reduce_sum(tf.cast(hits, tf.int32))


def _training(
    model: "tf.keras.Model", optimizer: "tf.keras.optimizers.Optimizer", samples: Samples
) -> "tf.types.experimental.PolymorphicFunction":
    """Return a function of the samples' numbers, a row a step, that trains, and the sums of loss and hits.

    It adds to the sums that it is given and returns them.
    """
    import tensorflow as tf

    inputs = tf.constant(samples.inputs)
    classes = tf.constant(samples.classes, tf.int32)

    def train(numbers: "tf.Tensor", loss: "tf.Tensor", right: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        for row in numbers:
            expected = tf.gather(classes, row)
            with tf.GradientTape() as tape:
                outputs = model(tf.gather(inputs, row), training=True)
                losses = _losses(outputs, expected)
                mean = tf.reduce_mean(losses)
            # Not apply_gradients: in Horovod 0.28 that applies the rank's own gradients, unaveraged.
            optimizer.minimize(mean, model.trainable_variables, tape=tape)
            loss += tf.cast(tf.reduce_sum(losses), tf.float64)
            right += _right(outputs, expected)
        return loss, right

    signature = [tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((), tf.float64)]
    return tf.function(train, input_signature=[*signature, tf.TensorSpec((), tf.int32)])


def _scoring(model: "tf.keras.Model") -> "tf.types.experimental.PolymorphicFunction":
    import tensorflow as tf

    def score(inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        outputs, expected = model(inputs, training=False), tf.cast(classes, tf.int32)
        return tf.reduce_sum(_losses(outputs, expected)), _right(outputs, expected)

    return tf.function(score, reduce_retracing=True)
