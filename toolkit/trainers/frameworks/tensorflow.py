"""Train Keras models with TensorFlow. Horovod, MPI or a TensorFlow strategy distributes the training."""

from typing import TYPE_CHECKING

from toolkit.trainers.learning.draws import own_draws
from toolkit.trainers.ranks.devices import prepare_devices

if TYPE_CHECKING:
    from toolkit.trainers.data.sources import Data
    from toolkit.trainers.ranks.world import World
    from toolkit.trainers.trainer import Options, Trainer
    from toolkit.trainers.training.loop import Loop

__all__ = ["MODEL", "TITLE", "gpus", "loop", "prepare_devices", "seed", "versions"]

TITLE = "TensorFlow"
MODEL = "model.keras"


def gpus(_: "World") -> tuple[int, list[int]]:
    """Return the number of GPUs that this rank sees, and the indices of the GPUs that this rank uses."""
    import tensorflow as tf

    taken = [int(one.name.rpartition(":")[2]) for one in tf.config.get_visible_devices("GPU")]
    return len(tf.config.list_physical_devices("GPU")), taken


def seed(number: int) -> None:
    """Set the seed of Python's, NumPy's and TensorFlow's random number generators."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(number)


def loop(trainer: "Trainer", options: "Options", world: "World", samples: "Data", epochs: int) -> "Loop":
    """Return a training loop with a new model and optimizer. All ranks start with rank 0's variables."""
    from toolkit.trainers.training.loop import Loop

    return Loop(
        own_draws(trainer.keras_model, options.seed, world.rank),
        samples,
        world,
        options.learning,
        batch=options.batch_size,
        epochs=epochs,
        seed=options.seed,
        augment=trainer.augment,
    )


def versions() -> dict[str, str]:
    """Return the versions of TensorFlow and NumPy."""
    import numpy as np
    import tensorflow as tf

    return {"tensorflow": tf.__version__, "numpy": np.__version__}
