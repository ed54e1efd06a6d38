"""The computation: a whole epoch as one compiled function, so that Python is left once an epoch."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.trainers.shares import share
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.world import World

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf

_EVALUATION_BATCH = 1000


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
        world.broadcast([*model.variables, *optimizer.variables()])

    def epoch(self, number: int) -> Score:
        """Train one epoch, the first being 0, and return the mean over its samples.

        Raises:
            Trouble: if the training diverged.
        """
        mine = share(
            count=self._count,
            batch=self._batch,
            rank=self._world.rank,
            size=self._world.size,
            epoch=number,
            seed=self._seed,
        )
        whole = self._count // self._batch * self._batch
        # The samples that fill no batch make one smaller step, the last of the epoch.
        parts = (mine[:whole].reshape(-1, self._batch), mine[whole:].reshape(1, -1))
        score = self._mean([self._train(part) for part in parts if part.size], self._count)
        if not math.isfinite(score.loss):
            diverged = f"the training diverged in epoch {number + 1}: the loss is no number"
            self._world.agree(Trouble(f"{diverged}; lower --learning-rate", code=1))
        return score

    def evaluate(self, samples: Samples) -> Score:
        """Score the model on samples that are shared out to the ranks."""
        rank, size = self._world.rank, self._world.size
        inputs, classes = samples.inputs[rank::size], samples.classes[rank::size]
        batches = [slice(at, at + _EVALUATION_BATCH) for at in range(0, len(classes), _EVALUATION_BATCH)]
        return self._mean([self._score(inputs[one], classes[one]) for one in batches], len(classes))

    def _mean(self, sums: "list[tuple[tf.Tensor, tf.Tensor]]", count: int) -> Score:
        loss = sum(float(one) for one, _ in sums)
        right = sum(float(one) for _, one in sums)
        loss, right, everyone = self._world.total([loss, right, count])
        return Score(loss / everyone, right / everyone)


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
    """Return a function of the samples' numbers, a row a step, that trains and returns loss and hits."""
    import tensorflow as tf

    inputs = tf.constant(samples.inputs)
    classes = tf.constant(samples.classes, tf.int32)

    def train(numbers: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        loss, right = tf.constant(0.0, tf.float64), tf.constant(0)
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

    return tf.function(train, input_signature=[tf.TensorSpec((None, None), tf.int32)])


def _scoring(model: "tf.keras.Model") -> "tf.types.experimental.PolymorphicFunction":
    import tensorflow as tf

    def score(inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        outputs, expected = model(inputs, training=False), tf.cast(classes, tf.int32)
        return tf.reduce_sum(_losses(outputs, expected)), _right(outputs, expected)

    return tf.function(score, reduce_retracing=True)
