"""Train with PyTorch. The ranks average gradients with DistributedDataParallel or FSDP."""

from typing import TYPE_CHECKING

from toolkit.trainers.data.sources import Samples
from toolkit.trainers.ranks.devices import own_cores
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    from toolkit.trainers.data.sources import Data
    from toolkit.trainers.ranks.world import World
    from toolkit.trainers.trainer import Options, Trainer
    from toolkit.trainers.training.torchloop import TorchLoop

TITLE = "PyTorch"
MODEL = "model.pt"


def prepare_devices(world: "World") -> int:
    """Make PyTorch use one thread for each CPU core of this rank, and return the number of CPU cores."""
    import torch

    threads = own_cores(world)
    torch.set_num_threads(threads)
    return threads


def gpus(world: "World") -> tuple[int, list[int]]:
    """Return the number of GPUs that this rank sees, and the indices of the GPUs that this rank uses."""
    import torch

    device = getattr(world, "device", None)
    own = [device.index] if device is not None and device.type == "cuda" else []
    return torch.cuda.device_count(), own


def seed(number: int) -> None:
    """Set the seed of NumPy's and PyTorch's random number generators."""
    import numpy as np
    import torch

    np.random.seed(number)
    torch.manual_seed(number)


def loop(trainer: "Trainer", options: "Options", world: "World", samples: "Data", epochs: int) -> "TorchLoop":
    """Return a training loop with a new model and optimizer. All ranks start with rank 0's weights.

    Raises:
        Trouble: if the samples are not in memory.
    """
    from toolkit.trainers.strategies.ddp import DistributedTorch
    from toolkit.trainers.training.torchloop import TorchLoop

    network = trainer.networks["pytorch"]
    # In PyTorch's strategies, ``world`` is a ``DistributedTorch``, so only ``samples`` can have a wrong type.
    if not isinstance(samples, Samples) or not isinstance(world, DistributedTorch):
        trouble = Trouble(
            f"--strategy {options.strategy}: PyTorch trains only if all samples are in memory, but this "
            "trainer does not load all samples into memory; choose a strategy of TensorFlow"
        )
        world.agree(trouble)
        raise trouble
    return TorchLoop(
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
    """Return the versions of PyTorch and NumPy."""
    import numpy as np
    import torch

    return {"torch": torch.__version__, "numpy": np.__version__}
