"""Make each rank draw different random numbers while a model trains, for example for dropout."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def own_draws(make: "Callable[[], tf.keras.Model]", seed: int, rank: int) -> "Callable[[], tf.keras.Model]":
    """Return a function that creates the model and then sets a random seed that only this rank has.

    The returned function draws the initial weights before it sets this seed, so the initial weights are equal
    on all ranks. For rank 0, return ``make`` unchanged. Rank 0 then draws the same random numbers as a
    training in a single process.
    """
    if not rank:
        return make

    def made() -> "tf.keras.Model":
        import tensorflow as tf

        model = make()
        tf.random.set_seed(fold_seed(seed, rank))
        return model

    return made


def fold_seed(seed: int, rank: int) -> int:
    """Return the seed for rank ``rank`` in a training with the seed ``seed``. The returned seed is
    statistically independent of the seeds of other ranks and of trainings with other seeds.
    """
    import numpy as np

    return int(np.random.SeedSequence((seed, rank)).generate_state(1)[0] >> 1)
