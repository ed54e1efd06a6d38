"""Run a training from start to result: load data, resume, train epochs, and write metrics and model."""

import math
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from toolkit.trainers.data.sources import Data
from toolkit.trainers.frameworks import TrainingLoop, framework_of
from toolkit.trainers.ranks.gpu_sharing import check_own_gpus
from toolkit.trainers.ranks.world import World
from toolkit.trainers.trainer import Options, Trainer
from toolkit.trainers.training import heading
from toolkit.trainers.training.course import Course, totals
from toolkit.trainers.training.metrics import Metrics, Record, Value, is_finished
from toolkit.trainers.training.progress import ProgressLine
from toolkit.trainers.training.rank_checkpoints import RankCheckpoints, TrainingStart
from toolkit.trainers.training.scalars import Scalars
from toolkit.trainers.training.trial import with_batch
from toolkit.trainers.training.watch import Watch, name_job, stop_file, was_restarted
from toolkit.trainers.trouble import Trouble


def epochs_each(epochs: int, size: int) -> int:
    """Return the number of epochs that each rank trains, so that all ranks together make at least ``epochs``
    passes over the data. In an epoch, all ranks together make ``size`` passes.
    """
    return math.ceil(epochs / size)


def train(trainer: Trainer, options: Options, world: World, threads: int) -> None:
    """Train the model, and evaluate it after each epoch. Rank 0 writes the metrics, the log and the model.

    Without ``--fresh``, the training resumes from the newest undamaged checkpoint in the output folder.

    Raises:
        Stopped: on all ranks, if the user or Slurm requests a stop; rank 0 has then written a checkpoint.
    """
    begun, framework = time.monotonic(), framework_of(world)
    check_own_gpus(world)
    checkpoints = RankCheckpoints(options.output, world, count=options.keep)
    start = _find_start(trainer, options, world, checkpoints)
    epochs = epochs_each(options.epochs, start.passes)
    framework.seed(options.seed)
    samples, test = _load(trainer, options.data)
    _check_same(world, len(samples), len(test))
    options = with_batch(trainer, options, world, samples, start.settings)
    settings = heading.settings(trainer, options, len(samples))
    world.agree(checkpoints.differs(start, settings))
    if start.epochs >= epochs and world.tell(_complete(options.output, framework.MODEL)):
        done = f"the {start.epochs} epoch{'s' * (start.epochs > 1)} of {options.output} are complete"
        heading.say(world, f"{trainer.name}: {done}; set a larger --epochs, or start again with --fresh")
        return
    loop = framework.loop(trainer, options, world, samples, epochs)
    if start.name:
        loop.restore(start.arrays)
    first = world.rank == 0
    scalars = Scalars(options.output) if options.tensorboard and first else None
    with Metrics(options.output if first else None, scalars) as metrics:
        now = heading.resumable_settings(options, world, threads, time.monotonic() - begun)
        if not start.name:
            checkpoints.clear(name_job(os.environ) if options.fresh else "")
        header: dict[str, Value] = {"strategy": options.strategy, "epochs": epochs}
        header |= {"test_samples": len(test), "parameters": loop.parameters}
        _open_metrics(metrics, start, epochs, settings, header, now)
        each = f"batch {options.batch_size} each{heading.tell_epochs(options.epochs, epochs)}"
        heading.say(world, f"{trainer.name}: {options.strategy}, {heading.ranks(world)}, {each}")
        if start.name:
            heading.say(world, f"{trainer.name}: {start.sentence(len(samples), world.width)}")
        with Watch(world, options.checkpoint_seconds, stop_file(os.environ, options.output)) as watch:
            images, passes = start.passes * len(samples), start.passes
            counted = 1 if loop.SUMS_ALL else world.size
            progress = ProgressLine(options.log_seconds, epochs, images, counted) if first else None
            Course(
                loop, len(samples), test, world, watch, checkpoints, metrics, settings, passes, progress
            ).run(start, epochs)
        _write_result(loop, metrics, world, options.output, framework.MODEL)


def _write_result(loop: TrainingLoop, metrics: Metrics, world: World, output: Path, model: str) -> None:
    """Let rank 0 save the trained model in the file ``model``, write the result line of the metrics, and log
    the test accuracy.
    """
    loop.collect()
    if world.rank:
        return
    loop.save(output / model)
    result = totals(metrics.records)
    metrics.result(**result, model=model)
    heading.say(world, f"test accuracy {result['test_accuracy']:.4f}; model in {output / model}")


def _find_start(
    trainer: Trainer, options: Options, world: World, checkpoints: RankCheckpoints
) -> TrainingStart:
    """Return the point at which the training starts. With ``--fresh``, ignore the checkpoints of other jobs.
    If Slurm or the job script restarted this job, resume from the job's own checkpoints, even with
    ``--fresh``.
    """
    own = was_restarted(os.environ) and checkpoints.are_of(name_job(os.environ))
    fresh = world.tell(options.fresh and not own)
    start = TrainingStart(passes=1) if fresh else checkpoints.find()
    if start.name:
        return start
    return replace(start, passes=world.width if trainer.passes == "each" else 1)


def _open_metrics(
    metrics: Metrics,
    start: TrainingStart,
    epochs: int,
    settings: Mapping[str, Value],
    first_values: Mapping[str, Value],
    resumable: Mapping[str, Value],
) -> None:
    """Write the first lines of the metrics. For a new training, write a header. For a resumed training,
    write the lines in the checkpoint and a line ``resumed``.

    Args:
        metrics: the metrics file.
        start: the point at which this run starts.
        epochs: the number of epochs.
        settings: header values that must be equal in a resumed training.
        first_values: further values for the header, which a resumed training does not write again.
        resumable: header values that may differ in a resumed training.
    """
    if start.name:
        metrics.resumed(_before(start, epochs), **_from(start), **resumable)
    else:
        metrics.header(**{**settings, **first_values, **resumable})


def _load(trainer: Trainer, data: Path | None) -> tuple[Data, Data]:
    try:
        return trainer.load(data or Path())
    except OSError as error:
        # The data passed an earlier check, so a file server has failed or a file has vanished since.
        where = error.filename or data
        raise Trouble(f"{where}: can no longer be read: {error.strerror or error}", code=1) from error


def _check_same(world: World, samples: int, test: int) -> None:
    """Check that all ranks have equally many samples. If the numbers of samples differed, the ranks would
    make different numbers of steps and hang.

    Raises:
        Trouble: if a number differs; all ranks stop.
    """
    told_samples, told_test = world.tell((samples, test))
    trouble = None
    for ours, theirs, what in ((samples, told_samples, "samples"), (test, told_test, "test samples")):
        if ours != theirs:
            trouble = trouble or Trouble(
                f"rank {world.rank} has {ours:,} {what}, but rank 0 has {theirs:,}: the data on "
                f"{os.uname().nodename} differs from rank 0's data; give all ranks the same data, in a "
                "folder that all nodes share"
            )
    world.agree(trouble)


def _complete(output: Path, model: str) -> bool:
    return is_finished(output) and (output / model).is_file()


def _from(start: TrainingStart) -> dict[str, Value]:
    """Return the fields of the metrics line ``resumed``: the checkpoint's name, the epoch in which the
    training resumes, and the number of samples that earlier runs have used in this epoch.
    """
    return {"checkpoint": start.name, "epoch": start.epochs + 1, "images": start.part.images}


def _before(start: TrainingStart, epochs: int) -> list[Record]:
    """Return the metrics lines of the checkpoint, with this run's number of epochs in the header line."""
    header, *others = start.records or ({},)
    return [{**header, "epochs": max(epochs, start.epochs)}, *others]
