"""Measure the training speed. The benchmark makes untimed warm-up steps, and then several timed iterations.
Each timed iteration has the same number of training steps.

The benchmark does not evaluate the model, and writes only the metrics (see ``docs/metrics.md``).
"""

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from toolkit.trainers.ranks.gpu_sharing import check_own_gpus
from toolkit.trainers.trainer import Options, Trainer
from toolkit.trainers.training import heading
from toolkit.trainers.training.loop import Loop
from toolkit.trainers.training.metrics import Metrics
from toolkit.trainers.training.trial import with_batch
from toolkit.trainers.words import count

if TYPE_CHECKING:
    from toolkit.trainers.ranks.world import World


@dataclass(frozen=True, slots=True)
class Protocol:
    """The length of a benchmark: ``warm_up`` untimed steps, then ``iterations`` iterations with ``steps``
    timed steps each.
    """

    warm_up: int = 10
    steps: int = 10
    iterations: int = 10

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument_group("measurement").add_argument
        add(
            "--warm-up",
            type=count,
            default=self.warm_up,
            metavar="N",
            help="untimed training steps before the measurement",
        )
        add(
            "--steps",
            type=count,
            default=self.steps,
            metavar="N",
            help="training steps in each timed iteration",
        )
        add(
            "--iterations",
            type=count,
            default=self.iterations,
            metavar="N",
            help="number of timed iterations",
        )


@dataclass(frozen=True, slots=True)
class Speed:
    """Images per second of all devices together: the median, minimum and maximum of all iterations."""

    median: float
    least: float
    most: float
    deviation: float
    """The standard deviation of the speed over all iterations, in images per second; 0 for one iteration."""

    @classmethod
    def of(cls, rates: Sequence[float]) -> Self:
        deviation = statistics.stdev(rates) if len(rates) > 1 else 0.0
        return cls(statistics.median(rates), min(rates), max(rates), deviation)

    def sentence(self, devices: int) -> str:
        """Return a line with the speed of all devices and, for several devices, the speed per device."""
        total = f"{self.median:,.1f} images/s (± {self.deviation:.1f}; {self.least:,.1f} to {self.most:,.1f})"
        return total + f", {self.median / devices:,.1f} on each of {devices} devices" * (devices > 1)


def measure(protocol: Protocol, trainer: Trainer, options: Options, world: "World", threads: int) -> None:
    """Run the benchmark. Rank 0 prints the speed and writes the metrics."""
    import tensorflow as tf

    begun = time.monotonic()
    check_own_gpus(world)
    tf.keras.utils.set_random_seed(options.seed)
    samples, _ = trainer.load(options.data or Path())
    # A benchmark may use a sample several times in a step, so a batch may be larger than the data set.
    options = with_batch(trainer, options, world, samples, repeats_allowed=True)
    loop = Loop(
        trainer.keras_model,
        samples,
        world,
        options.learning,
        batch=options.batch_size,
        epochs=protocol.iterations,
        seed=options.seed,
        augment=trainer.augment,
    )
    with Metrics(options.output if world.rank == 0 else None) as metrics:
        metrics.header(
            **{
                **heading.settings(trainer, options, len(samples)),
                **heading.resumable_settings(options, world, threads, time.monotonic() - begun),
                "strategy": options.strategy,
                "test_samples": 0,
                "epochs": protocol.iterations,
                "parameters": loop.model.count_params(),
                "warm_up_steps": protocol.warm_up,
                "steps": protocol.steps,
            }
        )
        line = f"{options.strategy}, {heading.ranks(world)}, batch {options.batch_size} each"
        heading.say(world, f"{trainer.name}: {line}")
        loop.timed(protocol.warm_up)
        images = protocol.steps * options.batch_size * options.learning.accumulate * world.width
        rates = _time_iterations(protocol, loop, images, world, metrics)
        _write_speed(metrics, world, rates, images)


def _write_speed(metrics: Metrics, world: "World", rates: Sequence[float], images: int) -> None:
    """Write the speed to the metrics file and to the log. ``rates`` contains the images per second of each
    iteration. ``images`` is the number of images on which all ranks together train in one iteration.
    """
    speed = Speed.of(rates)
    metrics.result(
        epochs=len(rates),
        seconds=round(images * len(rates) / statistics.harmonic_mean(rates), 4),
        images=images * len(rates),
        images_per_second=round(speed.median, 2),
        images_per_second_each=round(speed.median / world.width, 2),
        images_per_second_deviation=round(speed.deviation, 2),
    )
    heading.say(world, speed.sentence(world.width))


def _time_iterations(
    protocol: Protocol, loop: Loop, images: int, world: "World", metrics: Metrics
) -> list[float]:
    """Run all iterations. Log and return the images per second of each iteration. ``images`` is the number of
    images on which all ranks together train in one iteration.
    """
    rates = []
    for number in range(1, protocol.iterations + 1):
        before = loop.waited
        seconds, score = loop.timed(protocol.steps)
        rates.append(images / seconds)
        metrics.epoch(
            epoch=number,
            seconds=round(seconds, 4),
            images=images,
            images_per_second=round(rates[-1], 2),
            loss=score.loss,
            accuracy=score.accuracy,
            input_seconds=round(loop.waited - before, 4),
        )
        unknown = f"  the loss is {score.loss}" * (not math.isfinite(score.loss))
        heading.say(
            world,
            f"{number}/{protocol.iterations}  {seconds:.2f} s  {rates[-1]:,.1f} images/s{unknown}",
        )
    return rates
