"""What is drawn while a model trains, as by dropout: on each rank something else."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def own_draws(make: "Callable[[], tf.keras.Model]", seed: int, rank: int) -> "Callable[[], tf.keras.Model]":
    """Return what makes a model, and lets all that is drawn from then on be this rank's own.

    The first weights are drawn before, and so are the same on all ranks. Rank 0 draws what one process would.
    """
    if not rank:
        return make

    def made() -> "tf.keras.Model":
        import tensorflow as tf

        model = make()
        tf.random.set_seed(folded(seed, rank))
        return model

    return made


def folded(seed: int, rank: int) -> int:
    """Return the seed of one rank, as far from those of the others as from those of other seeds."""
    import numpy as np

    return int(np.random.SeedSequence((seed, rank)).generate_state(1)[0] >> 1)
