"""One run of a trainer: data, epochs, and what rank 0 writes about them."""

import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.trainers.course import Course, totals
from toolkit.trainers.keeper import Keeper, Settings, Start
from toolkit.trainers.loop import Loop, Samples
from toolkit.trainers.metrics import Metrics, Record, Value, finished, writing
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.watch import Watch, restarted, stop_file
from toolkit.trainers.world import Strategy, World

if TYPE_CHECKING:
    import tensorflow as tf

MODEL = "model.keras"


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


@dataclass(frozen=True)
class Options:
    """What a person chose. ``epochs`` is for all ranks together, ``batch_size`` and rate for each.

    ``fresh`` begins anew where there is a checkpoint, ``keep`` is how many of them stay, and
    ``checkpoint_seconds`` how long a training goes on without one within an epoch.
    """

    data: Path
    output: Path
    strategy: Strategy
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    fresh: bool = False
    keep: int = 3
    checkpoint_seconds: float = 600.0


def epochs_each(epochs: int, size: int) -> int:
    """Return how many epochs each of ``size`` ranks trains, so that they make ``epochs`` together."""
    return math.ceil(epochs / size)


def train(trainer: Trainer, options: Options, world: World, threads: int) -> None:
    """Train, score the test samples after each epoch, and let rank 0 write metrics, log and model.

    A training in the same output folder that was stopped or failed goes on from its last checkpoint.

    Raises:
        Stopped: on all ranks, if somebody asked for it; a checkpoint has been written.
    """
    import tensorflow as tf

    begun = time.monotonic()
    keeper = Keeper(options.output, world, keep=options.keep)
    fresh = world.tell(options.fresh and not restarted(os.environ))
    start = Start(passes=world.size) if fresh else keeper.find()
    epochs = epochs_each(options.epochs, start.passes)
    if start.epochs >= epochs and world.tell(_complete(options.output)):
        done = f"{start.epochs} epoch{'s' * (start.epochs > 1)} of {options.output} are complete"
        _say(world, f"{trainer.name}: the {done}; ask for more with --epochs, or begin anew with --fresh")
        return
    tf.keras.utils.set_random_seed(options.seed)
    samples, test = _load(trainer, options.data)
    settings = _settings(trainer, options, len(samples))
    world.agree(keeper.differs(start, settings))
    loop = Loop(
        trainer.model(),
        samples,
        world,
        batch=options.batch_size,
        rate=options.learning_rate,
        seed=options.seed,
    )
    if start.name:
        loop.restore(start.arrays)
    with Metrics(options.output if world.rank == 0 else None) as metrics:
        now = _now(options, world, threads, time.monotonic() - begun)
        if start.name:
            metrics.resumed(_before(start, epochs), **_from(start), **now)
        else:
            keeper.clear()
            sizes = {"test_samples": len(test), "parameters": loop.model.count_params()}
            metrics.header(**{**settings, "strategy": options.strategy, "epochs": epochs, **sizes, **now})
        _say(world, f"{trainer.name}: {options.strategy}, {_ranks(world)}, batch {options.batch_size} each")
        if start.name:
            _say(world, f"{trainer.name}: {start.sentence(len(samples), world.size)}")
        with Watch(world, options.checkpoint_seconds, stop_file(os.environ, options.output)) as watch:
            Course(loop, len(samples), test, world, watch, keeper, metrics, settings, start.passes).run(
                start, epochs
            )
        if world.rank == 0:
            save(loop.model, options.output / MODEL)
            result = totals(metrics.records)
            metrics.result(**result, model=MODEL)
            _say(world, f"test accuracy {result['test_accuracy']:.4f}; model in {options.output / MODEL}")


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


def _complete(output: Path) -> bool:
    return finished(output) and (output / MODEL).is_file()


def _settings(trainer: Trainer, options: Options, samples: int) -> Settings:
    """Return what two runs must share for one to go on where the other was."""
    return {
        "trainer": trainer.name,
        "batch_size": options.batch_size,
        "seed": options.seed,
        "samples": samples,
        "learning_rate": options.learning_rate,
    }


def _now(options: Options, world: World, threads: int, seconds: float) -> dict[str, Value]:
    """Return what may be another when a training goes on; ``seconds`` is what the start took."""
    return {
        "world_size": world.size,
        "nodes": world.nodes,
        "threads": threads,
        "global_batch_size": options.batch_size * world.size,
        "learning_rate": options.learning_rate * world.size,
        "start_seconds": round(seconds, 3),
        "versions": _versions(world),
    }


def _from(start: Start) -> dict[str, Value]:
    """Return where a training goes on: in which epoch, and how much of it is done."""
    return {"checkpoint": start.name, "epoch": start.epochs + 1, "images": start.part.images}


def _before(start: Start, epochs: int) -> list[Record]:
    """Return the lines of metrics up to the checkpoint, with the number of epochs that is asked for now."""
    header, *others = start.records or ({},)
    return [{**header, "epochs": max(epochs, start.epochs)}, *others]


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
