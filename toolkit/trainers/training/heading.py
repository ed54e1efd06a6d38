"""Compute the values in the first line of ``metrics.jsonl``, and the first log lines of a training."""

import platform
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.trainers.frameworks import framework_of
from toolkit.trainers.trainer import Options, Trainer
from toolkit.trainers.training.metrics import Value

if TYPE_CHECKING:
    from toolkit.trainers.ranks.world import World

Settings = dict[str, str | int | float]


def settings(trainer: Trainer, options: Options, samples: int) -> Settings:
    """Return the settings that a user must not change when a run resumes a training."""
    return {
        "trainer": trainer.name,
        "batch_size": options.batch_size,
        "seed": options.seed,
        "samples": samples,
        **trainer.variant,
        **options.learning.settings(),
        **({"epochs": options.epochs} if options.learning.ends() else {}),
    }


def resumable_settings(options: Options, world: "World", threads: int, seconds: float) -> dict[str, Value]:
    """Return the values in the metrics header that may change when a run resumes the training. ``seconds`` is
    the time in seconds that the trainer has needed so far, to load the data and to build the model.
    """
    return {
        "world_size": world.size,
        "devices": world.devices,
        "nodes": world.nodes,
        "threads": threads,
        "global_batch_size": options.batch_size * options.learning.accumulate * world.width,
        "learning_rate": options.learning.scaled(world, options.batch_size),
        "start_seconds": round(seconds, 3),
        "versions": _versions(world),
    }


def _versions(world: "World") -> dict[str, str]:
    return {
        "toolkit": __version__,
        "python": platform.python_version(),
        **framework_of(world).versions(),
        **world.versions,
    }


def ranks(world: "World") -> str:
    """Return a phrase with the number of ranks, of devices per rank (if more than one), and of nodes. For one
    rank, omit the nodes.
    """
    devices = f" of {world.devices} devices" * (world.devices > 1)
    if world.size == 1:
        return f"1 rank{devices}"
    return f"{world.size} ranks{devices} on {world.nodes} node{'s' if world.nodes > 1 else ''}"


def say(world: "World", line: str) -> None:
    """Print a log line on rank 0."""
    if world.rank == 0:
        print(line, flush=True)


def tell_epochs(epochs: int, rank_epochs: int) -> str:
    """Return a phrase for the log with the number of epochs per device (``rank_epochs``). Return an empty
    string if ``rank_epochs`` equals ``epochs``, the value of ``--epochs``.
    """
    if rank_epochs == epochs:
        return ""
    return (
        f"; {rank_epochs} epoch{'s' if rank_epochs > 1 else ''} per device: --epochs {epochs} is the total "
        "of all devices"
    )
