"""One run of a trainer: data, epochs, and what rank 0 writes about them."""

import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.trainers.data.sources import Data
from toolkit.trainers.learning.draws import own_draws
from toolkit.trainers.ranks.apart import check_apart
from toolkit.trainers.ranks.world import World
from toolkit.trainers.trainer import Options, Trainer
from toolkit.trainers.training import heading
from toolkit.trainers.training.course import Course, totals
from toolkit.trainers.training.keeper import Keeper, Start
from toolkit.trainers.training.loop import Loop
from toolkit.trainers.training.metrics import Metrics, Record, Value, finished, writing
from toolkit.trainers.training.progress import ProgressLine
from toolkit.trainers.training.scalars import Scalars
from toolkit.trainers.training.trial import with_batch
from toolkit.trainers.training.watch import Watch, restarted, stop_file
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import tensorflow as tf

MODEL = "model.keras"


def epochs_each(epochs: int, size: int) -> int:
    """Return how many epochs each of ``size`` ranks trains, so that they make ``epochs`` together."""
    return math.ceil(epochs / size)


def train(trainer: Trainer, options: Options, world: World, threads: int) -> None:
    """Train, score the test samples after each epoch, and let rank 0 write metrics, log and model.

    A stopped or failed training in the same output folder is resumed from its last checkpoint.

    Raises:
        Stopped: on all ranks, if a stop was requested; a checkpoint has been written.
    """
    import tensorflow as tf

    begun = time.monotonic()
    check_apart(world)
    keeper = Keeper(options.output, world, keep=options.keep)
    fresh = world.tell(options.fresh and not restarted(os.environ))
    start = Start(passes=1) if fresh else keeper.find()
    if not start.name:
        start = replace(start, passes=world.width if trainer.passes == "each" else 1)
    epochs = epochs_each(options.epochs, start.passes)
    tf.keras.utils.set_random_seed(options.seed)
    samples, test = _load(trainer, options.data)
    _check_same(world, len(samples), len(test))
    options = with_batch(trainer, options, world, samples, start.settings)
    settings = heading.settings(trainer, options, len(samples))
    world.agree(keeper.differs(start, settings))
    if start.epochs >= epochs and world.tell(_complete(options.output)):
        done = f"{start.epochs} epoch{'s' * (start.epochs > 1)} of {options.output} are complete"
        heading.say(
            world, f"{trainer.name}: the {done}; train more with --epochs, or start again with --fresh"
        )
        return
    loop = Loop(
        own_draws(trainer.model, options.seed, world.rank),
        samples,
        world,
        options.learning,
        batch=options.batch_size,
        epochs=epochs,
        seed=options.seed,
        augment=trainer.augment,
    )
    if start.name:
        loop.restore(start.arrays)
    first = world.rank == 0
    scalars = Scalars(options.output) if options.tensorboard and first else None
    with Metrics(options.output if first else None, scalars) as metrics:
        now = heading.now(options, world, threads, time.monotonic() - begun)
        if start.name:
            metrics.resumed(_before(start, epochs), **_from(start), **now)
        else:
            keeper.clear()
            sizes = {"test_samples": len(test), "parameters": loop.model.count_params()}
            metrics.header(**{**settings, "strategy": options.strategy, "epochs": epochs, **sizes, **now})
        heading.say(
            world,
            f"{trainer.name}: {options.strategy}, {heading.ranks(world)}, batch {options.batch_size} each"
            f"{heading.shared(options.epochs, epochs)}",
        )
        if start.name:
            heading.say(world, f"{trainer.name}: {start.sentence(len(samples), world.width)}")
        with Watch(world, options.checkpoint_seconds, stop_file(os.environ, options.output)) as watch:
            images = start.passes * len(samples)
            progress = ProgressLine(options.log_seconds, epochs, images, world.size) if first else None
            Course(
                loop, len(samples), test, world, watch, keeper, metrics, settings, start.passes, progress
            ).run(start, epochs)
        if first:
            save(loop.portable(), options.output / MODEL)
            result = totals(metrics.records)
            metrics.result(**result, model=MODEL)
            heading.say(
                world, f"test accuracy {result['test_accuracy']:.4f}; model in {options.output / MODEL}"
            )


def save(model: "tf.keras.Model", path: Path) -> None:
    """Save a model atomically: the name always refers to the old or the complete new model."""
    # Keras chooses the format by the ending, so the temporary name keeps it.
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    with writing(path):
        try:
            model.save(beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _load(trainer: Trainer, data: Path | None) -> tuple[Data, Data]:
    try:
        return trainer.load(data or Path())
    except OSError as error:
        # It existed when it was checked: a file server failed, or the file was deleted since.
        where = error.filename or data
        raise Trouble(f"{where}: cannot be read any more: {error.strerror or error}", code=1) from error


def _check_same(world: World, samples: int, test: int) -> None:
    """Check that all ranks have rank 0's number of samples; with others, steps differ and ranks hang.

    Raises:
        Trouble: on all ranks, if a number differs.
    """
    told_samples, told_test = world.tell((samples, test))
    trouble = None
    for ours, theirs, what in ((samples, told_samples, "samples"), (test, told_test, "test samples")):
        if ours != theirs:
            trouble = trouble or Trouble(
                f"rank {world.rank} has {ours:,} {what}, and rank 0 has {theirs:,}: {os.uname().nodename} "
                "sees other data; give all ranks the same, in a folder that all nodes share"
            )
    world.agree(trouble)


def _complete(output: Path) -> bool:
    return finished(output) and (output / MODEL).is_file()


def _from(start: Start) -> dict[str, Value]:
    """Return where a training resumes: the epoch, and how much of it is done."""
    return {"checkpoint": start.name, "epoch": start.epochs + 1, "images": start.part.images}


def _before(start: Start, epochs: int) -> list[Record]:
    """Return the metric lines up to the checkpoint, with the new number of epochs."""
    header, *others = start.records or ({},)
    return [{**header, "epochs": max(epochs, start.epochs)}, *others]
