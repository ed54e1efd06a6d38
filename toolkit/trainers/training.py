"""One run of a trainer: data, epochs, and what rank 0 writes about them."""

import math
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.trainers.loop import Loop, Samples
from toolkit.trainers.metrics import Metrics, writing
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.world import Strategy, World

if TYPE_CHECKING:
    import tensorflow as tf

MODEL = "model.keras"
_SHORTEST = 1e-4


@dataclass(frozen=True, slots=True)
class Trainer:
    """A model, its data and its defaults; ``check`` looks at the data without loading any of it."""

    name: str
    check: Callable[[Path], None]
    load: Callable[[Path], tuple[Samples, Samples]]
    """Return the samples for training and those for the test."""
    model: "Callable[[], tf.keras.Model]"
    epochs: int
    batch_size: int
    learning_rate: float


@dataclass(frozen=True, slots=True)
class Options:
    """What a person chose. ``epochs`` is for all ranks together, ``batch_size`` and rate for each."""

    data: Path
    output: Path
    strategy: Strategy
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """What is known after an epoch; ``seconds`` is the training alone, ``images`` those of all ranks."""

    epoch: int
    seconds: float
    images: int
    images_per_second: float
    loss: float
    accuracy: float
    test_loss: float
    test_accuracy: float

    def line(self, epochs: int) -> str:
        return (
            f"epoch {self.epoch}/{epochs}  loss {self.loss:.4f}  accuracy {self.accuracy:.4f}  "
            f"test accuracy {self.test_accuracy:.4f}  {self.seconds:.2f} s  "
            f"{self.images_per_second:,.0f} images/s"
        )


def epochs_each(epochs: int, size: int) -> int:
    """Return how many epochs each of ``size`` ranks trains, so that they make ``epochs`` together."""
    return math.ceil(epochs / size)


def train(trainer: Trainer, options: Options, world: World, threads: int) -> None:
    """Train, score the test samples after each epoch, and let rank 0 write metrics, log and model."""
    import tensorflow as tf

    begun = time.monotonic()
    tf.keras.utils.set_random_seed(options.seed)
    samples, test = _load(trainer, options.data)
    loop = Loop(
        trainer.model(),
        samples,
        world,
        batch=options.batch_size,
        rate=options.learning_rate,
        seed=options.seed,
    )
    epochs = epochs_each(options.epochs, world.size)
    with Metrics(options.output if world.rank == 0 else None) as metrics:
        metrics.header(
            trainer=trainer.name,
            strategy=options.strategy,
            world_size=world.size,
            nodes=world.nodes,
            threads=threads,
            batch_size=options.batch_size,
            global_batch_size=options.batch_size * world.size,
            epochs=epochs,
            learning_rate=options.learning_rate * world.size,
            seed=options.seed,
            samples=len(samples),
            test_samples=len(test),
            parameters=loop.model.count_params(),
            start_seconds=round(time.monotonic() - begun, 3),
            versions=_versions(world),
        )
        _say(world, f"{trainer.name}: {options.strategy}, {_ranks(world)}, batch {options.batch_size} each")
        done = []
        for number in range(epochs):
            done.append(_epoch(loop, number, test, len(samples) * world.size))
            metrics.epoch(**asdict(done[-1]))
            _say(world, done[-1].line(epochs))
        if world.rank == 0:
            save(loop.model, options.output / MODEL)
        metrics.result(**_result(done), model=MODEL)
    _say(world, f"test accuracy {done[-1].test_accuracy:.4f}; model in {options.output / MODEL}")


def save(model: "tf.keras.Model", path: Path) -> None:
    """Save a model so that under its name there is either the old one or the whole new one."""
    # Keras chooses the format by the ending, which the temporary name therefore keeps.
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    with writing(path):
        try:
            model.save(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _load(trainer: Trainer, data: Path) -> tuple[Samples, Samples]:
    try:
        return trainer.load(data)
    except OSError as error:
        # It was there when it was checked: a file server that went away, or someone who tidied up.
        where = error.filename or data
        raise Trouble(f"{where}: cannot be read any more: {error.strerror or error}", code=1) from error


def _epoch(loop: Loop, number: int, test: Samples, images: int) -> Epoch:
    begun = time.monotonic()
    score = loop.epoch(number)
    # What is written is rounded to this; less would be written as nothing, and nobody can divide by that.
    seconds = max(time.monotonic() - begun, _SHORTEST)
    held_back = loop.evaluate(test)
    return Epoch(
        epoch=number + 1,
        seconds=round(seconds, 4),
        images=images,
        images_per_second=round(images / seconds, 1),
        loss=score.loss,
        accuracy=score.accuracy,
        test_loss=held_back.loss,
        test_accuracy=held_back.accuracy,
    )


def _result(done: list[Epoch]) -> Mapping[str, float | int]:
    seconds = sum(epoch.seconds for epoch in done)
    images = sum(epoch.images for epoch in done)
    return {
        "epochs": len(done),
        "test_loss": done[-1].test_loss,
        "test_accuracy": done[-1].test_accuracy,
        "seconds": round(seconds, 4),
        "images": images,
        "images_per_second": round(images / seconds, 1),
    }


def _versions(world: World) -> dict[str, str]:
    import numpy as np
    import tensorflow as tf

    return {
        "toolkit": __version__,
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "numpy": np.__version__,
        **world.versions,
    }


def _ranks(world: World) -> str:
    if world.size == 1:
        return "1 rank"
    return f"{world.size} ranks on {world.nodes} node{'s' if world.nodes > 1 else ''}"


def _say(world: World, line: str) -> None:
    if world.rank == 0:
        print(line, flush=True)
