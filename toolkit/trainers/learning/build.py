"""Make what trains: the model, its optimizer, and the step of one device."""

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

    from toolkit.trainers.ranks.world import Step, World


def build(
    make: "Callable[[], tf.keras.Model]", world: "World", learning: Learning, batch: int
) -> "tuple[tf.keras.Model, tf.keras.optimizers.Optimizer, Step]":
    """Make them in the world's scope, for a batch of so many samples.

    Raises:
        Trouble: if the model has nothing to do what was chosen with.
    """
    try:
        return _build(make, world, learning, batch)
    except Trouble as trouble:
        # It is that of all ranks, and one of them tells it.
        world.agree(trouble)
        raise


def _build(
    make: "Callable[[], tf.keras.Model]", world: "World", learning: Learning, batch: int
) -> "tuple[tf.keras.Model, tf.keras.optimizers.Optimizer, Step]":
    with world.scope():
        precision.compute_in(learning.mixed_precision)
        model = make()
        if learning.sync_batch_norm and not norms.synchronise(model, world):
            raise Trouble("--sync-batch-norm: the model has no batch normalisation; leave it out")
        draw_bits(model)
        pool_first(model)
        spare_biases(model)
        optimizer = learning.optimizer_for(world, batch)
        # Its rate becomes a variable when it is asked for, and within a loop that is too late.
        _ = optimizer.learning_rate
    return model, optimizer, training(model, optimizer, world, learning, compiled=by_xla(learning))


def by_xla(learning: Learning) -> bool:
    """Tell whether forward and backward are compiled by XLA.

    ``auto`` is for where that was measured to be faster: so far nowhere. On a CPU it takes dense networks to
    0.9 of their speed and convolutions to 0.56 (docs/learning.md); GPUs were not measured.
    """
    return learning.xla == "on"
