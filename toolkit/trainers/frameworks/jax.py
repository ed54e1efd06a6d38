"""Train with JAX, whose models are pure functions that XLA compiles for the devices of all ranks."""

import os
from typing import TYPE_CHECKING

from toolkit.trainers.checks.node import DEVICES, openable
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.ranks.devices import own_cores, visible_gpus
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    from toolkit.trainers.data.sources import Data
    from toolkit.trainers.ranks.world import World
    from toolkit.trainers.trainer import Options, Trainer
    from toolkit.trainers.training.jaxloop import JaxLoop

TITLE = "JAX"
MODEL = "model.npz"


def prepare_devices(world: "World") -> int:
    """Make XLA start one CPU thread for each CPU core of this rank, unless the environment variable ``NPROC``
    is already set. Return the number of this rank's CPU cores.
    """
    threads = own_cores(world)
    # XLA reads the size of its CPU thread pool from NPROC (xla/pjrt/utils.cc, DefaultThreadPoolSize).
    os.environ.setdefault("NPROC", str(threads))
    return threads


def gpus(_: "World") -> tuple[int, list[int]]:
    """Return the number of GPUs that this rank sees, and the indices of the GPUs that this rank uses."""
    import jax

    own = [device.local_hardware_id for device in jax.local_devices() if device.platform == "gpu"]
    return visible_gpus(os.environ, len(openable(DEVICES))), own


def seed(number: int) -> None:
    """Set the seed of NumPy's random number generator. JAX has no global seed, because each random function
    takes a key as an argument.
    """
    import numpy as np

    np.random.seed(number)


def loop(trainer: "Trainer", options: "Options", world: "World", samples: "Data", epochs: int) -> "JaxLoop":
    """Return a training loop with a new model and optimizer. All ranks start with rank 0's weights.

    Raises:
        Trouble: if the samples are not in memory.
    """
    from toolkit.trainers.strategies.jax import DistributedJax
    from toolkit.trainers.training.jaxloop import JaxLoop

    network = trainer.networks["jax"]
    # In JAX's strategies, ``world`` is a ``DistributedJax``, so only ``samples`` can have a wrong type.
    if not isinstance(samples, Samples) or not isinstance(world, DistributedJax):
        trouble = Trouble(
            f"--strategy {options.strategy}: JAX trains only if all samples are in memory, but this trainer "
            "does not load all samples into memory; choose a strategy of TensorFlow"
        )
        world.agree(trouble)
        raise trouble
    return JaxLoop(
        network.model,
        samples,
        world,
        options.learning,
        batch=options.batch_size,
        epochs=epochs,
        seed=options.seed,
        augment=network.augment,
    )


def versions() -> dict[str, str]:
    """Return the versions of JAX and NumPy."""
    import jax
    import numpy as np

    return {"jax": jax.__version__, "numpy": np.__version__}
