"""Build the model, its optimizer, and the training step of one device."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.trainers.learning import norms, precision
from toolkit.trainers.learning.biases import spare_biases
from toolkit.trainers.learning.dropout import draw_bits
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.learning.pooling import pool_first
from toolkit.trainers.learning.step import training
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import tensorflow as tf

    from toolkit.trainers.kinds import Step
    from toolkit.trainers.ranks.world import World


def build(
    make: "Callable[[], tf.keras.Model]", world: "World", learning: Learning, batch: int
) -> "tuple[tf.keras.Model, tf.keras.optimizers.Optimizer, Step]":
    """Return the model that ``make`` creates, its optimizer, and its training step. toolkit creates the model
    and the optimizer inside ``world.scope()``. The learning rate depends on ``batch``, the number of samples
    in a batch of one device.

    Raises:
        Trouble: for example, if ``--sync-batch-norm`` is set, but the model has no batch normalisation.
    """
    try:
        return _build(make, world, learning, batch)
    except Trouble as trouble:
        # All ranks have found the same fault. agree() makes only rank 0 report the fault.
        world.agree(trouble)
        raise


def _build(
    make: "Callable[[], tf.keras.Model]", world: "World", learning: Learning, batch: int
) -> "tuple[tf.keras.Model, tf.keras.optimizers.Optimizer, Step]":
    with world.scope():
        precision.compute_in(learning.mixed_precision)
        model = make()
        if learning.sync_batch_norm and not norms.synchronise(model, world):
            raise Trouble("--sync-batch-norm: the model has no batch normalisation; leave out the option")
        draw_bits(model)
        pool_first(model)
        spare_biases(model)
        optimizer = learning.optimizer_for(world, batch)
        # Reading the learning rate creates its variable. TensorFlow cannot create variables in a graph loop.
        _ = optimizer.learning_rate
    return model, optimizer, training(model, optimizer, world, learning, compiled=by_xla(learning))


def by_xla(learning: Learning) -> bool:
    """Return whether XLA compiles the forward and backward pass.

    ``--xla auto`` means off, because no measurement has shown that training with XLA is faster. On a CPU,
    dense networks train with XLA at 0.9 times the speed without XLA, and convolutional networks at 0.56 times
    the speed without XLA (docs/learning-benchmarks.md). toolkit's developers did not measure XLA on GPUs.
    """
    return learning.xla == "on"
