"""``--batch-size auto``: double the batch size until the memory is full. Then choose the smallest batch size
that is nearly as fast as the fastest batch size.

All ranks measure the batch sizes at the same time, so that each node has the same load as in the training.
The ranks exchange no messages during a measurement.
"""

import gc
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.trainers.data.sources import Data
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.ranks.world import World
from toolkit.trainers.trainer import Options, Trainer
from toolkit.trainers.training import memory
from toolkit.trainers.training.heading import say
from toolkit.trainers.training.loop import Loop
from toolkit.trainers.training.rank_checkpoints import Settings
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.words import format_bytes

if TYPE_CHECKING:
    import tensorflow as tf

SMALLEST, LARGEST = 16, 4096
_SECONDS = 1.0
_SHARE = 0.8
"""The share of the free memory that the trial of a batch size may use. The rest of the free memory is for
data that an epoch needs, but a trial does not need.
"""

_LONGEST = 20.0
"""If a training step takes longer than this number of seconds, toolkit tries no larger batch size, because
the trial would take too long.
"""

_AS_FAST = 0.97
"""toolkit chooses the smallest batch size that reaches this share of the best speed, because smaller batches
give more updates per epoch.
"""


class Alone(World):
    """A :class:`World` of a single process, which measures training steps without messages between ranks."""

    rank = local_rank = 0
    size = local_size = nodes = 1

    def __init__(self) -> None:
        self.versions = {}


@dataclass(frozen=True, slots=True)
class BatchSpeed:
    """A batch size, and the speed of all devices together with this batch size, in samples per second."""

    batch: int
    speed: float


def with_batch(
    trainer: Trainer,
    options: Options,
    world: World,
    data: Data,
    earlier_settings: Settings | None = None,
    *,
    repeats_allowed: bool = False,
) -> Options:
    """Return the options with a batch size. If the user sets a batch size, return the options unchanged.

    If the user sets no batch size, a resumed training uses the batch size in ``earlier_settings``, the
    settings of the earlier run. A new training finds the batch size by trial.

    If ``repeats_allowed`` is true, the batch of all ranks may be larger than the data set. One step then
    trains some samples several times.

    Raises:
        Trouble: if not even the smallest batch fits into the memory.
    """
    if options.batch_size:
        return options
    if earlier_settings:
        return replace(options, batch_size=int(earlier_settings["batch_size"]))
    found = batch_size(
        trainer.keras_model,
        data,
        world,
        options.learning,
        limit=options.batch_limit,
        seed=options.seed,
        repeats_allowed=repeats_allowed,
    )
    return replace(options, batch_size=found)


def batch_size(
    model: "Callable[[], tf.keras.Model]",
    data: Data,
    world: World,
    learning: Learning,
    *,
    limit: int,
    seed: int,
    repeats_allowed: bool = False,
) -> int:
    """Find a batch size per device by trial, at most ``limit``. All ranks return the same batch size.

    If ``repeats_allowed`` is true, the batch of all ranks may be larger than the data set. One step then
    trains some samples several times.

    Raises:
        Trouble: if not even the smallest batch fits into the memory.
    """
    import tensorflow as tf

    limit, most = largest(limit, len(data), world.width, repeats_allowed=repeats_allowed)
    alone = replace(learning, accumulate=1, compression="none", sync_batch_norm=False)
    world_of_one: World = Alone()  # type: ignore[abstract]  # its empty methods suffice
    loop = Loop(model, data, world_of_one, alone, batch=min(SMALLEST, limit), epochs=1, seed=seed)
    tried, why = _double(loop, world, limit, most)
    del loop
    # Reset TensorFlow and the random seeds, so that the trial has no effect on the training.
    tf.keras.backend.clear_session()
    gc.collect()
    tf.keras.utils.set_random_seed(seed)
    if not tried:
        raise Trouble(f"--batch-size auto: no batch size fits: {why}", code=1)
    best = fastest(tried)
    speeds = ", ".join(f"{one.batch} ({one.speed:,.0f})" for one in tried)
    say(world, f"batch sizes tried (images/s): {speeds}; {why}; using {best}")
    return best


def largest(limit: int, samples: int, width: int, *, repeats_allowed: bool) -> tuple[int, str]:
    """Return the largest batch size that toolkit tries, and a text for the log that says why toolkit tries no
    larger batch size. ``samples`` is the number of samples in the data set; ``width`` is the number of
    devices of all ranks together.
    """
    share = max(1, samples // width)
    if repeats_allowed or limit <= share:
        return limit, f"the limit is {limit}"
    return share, f"a batch of {share} on each device uses all samples in one step"


def fastest(speeds: Sequence[BatchSpeed]) -> int:
    """Return the smallest batch size that is nearly as fast as the fastest size."""
    best = max(one.speed for one in speeds)
    return min(one.batch for one in speeds if one.speed >= _AS_FAST * best)


def _double(loop: Loop, world: World, limit: int, limit_text: str) -> tuple[list[BatchSpeed], str]:
    """Double the batch size repeatedly, and measure the speed with each size. Return the speeds, and a text
    for the log that says why toolkit did not try a larger batch size.

    ``limit`` is the largest batch size to try. If toolkit tries ``limit`` and the batch fits into memory, the
    text is ``limit_text``.
    """
    import tensorflow as tf

    tried: list[BatchSpeed] = []
    batch, before = min(SMALLEST, limit), _peak()
    first = before
    on_gpu = bool(tf.config.list_logical_devices("GPU"))
    while True:
        speed = _speed(loop, batch)
        grown, before = _peak() - before, _peak()
        # The next batch size is twice as large. Estimate how much more memory it needs: twice the memory
        # growth with this batch size, or the growth since the start of the trial, whichever is larger.
        # Divide the available memory by the number of ranks that share this node's memory.
        need, left = (
            2 * max(grown, (before - first) // 2),
            int(_SHARE * memory.available()) // world.local_size,
        )
        short = not on_gpu and need > left
        slow = batch > _LONGEST * speed
        failed, ending, tedious, total = world.total([speed == 0.0, short, slow, speed])
        if failed:
            return tried, f"a batch of {batch} does not fit into memory"
        tried.append(BatchSpeed(batch, total))
        if batch >= limit:
            return tried, limit_text
        if ending:
            more, there = format_bytes(need), format_bytes(left)
            return tried, (
                f"a batch of {2 * batch} would need {more} more than a batch of {batch}, but {there} are "
                "available"
            )
        if tedious:
            return tried, f"a step with a batch of {batch} took longer than {_LONGEST:.0f} s"
        batch = min(2 * batch, limit)


def _speed(loop: Loop, batch: int) -> float:
    """Return the speed in samples per second with ``batch`` samples per step. Return 0 if the batch does not
    fit into memory.
    """
    import tensorflow as tf

    try:
        loop.timed(1, batch)
        once, _ = loop.timed(1, batch)
        steps = max(1, min(200, round(_SECONDS / max(once, 1e-4))))
        seconds, _ = loop.timed(steps, batch)
    except tf.errors.ResourceExhaustedError:
        return 0.0
    return steps * batch / seconds


def _peak() -> int:
    """Return the peak resident memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
