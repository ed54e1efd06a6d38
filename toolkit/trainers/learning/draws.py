"""Give each rank its own random numbers while a model trains, for example for dropout."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def own_draws(make: "Callable[[], tf.keras.Model]", seed: int, rank: int) -> "Callable[[], tf.keras.Model]":
    """Return a function that makes a model, and gives all later random draws this rank's own seed.

    The first weights are drawn before, so they are equal on all ranks. Rank 0 draws the same numbers as a
    single process.
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
    """Return the seed of one rank, unrelated to the seeds of other ranks and of other trainings."""
    import numpy as np

    return int(np.random.SeedSequence((seed, rank)).generate_state(1)[0] >> 1)
