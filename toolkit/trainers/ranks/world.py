"""All ranks of a training: what a way to distribute it has to do, and the choice between them.

A rank is a process. It computes on one or several devices; a step takes a batch for each device of each rank.
"""

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from toolkit.trainers.ranks.launcher import started_rank
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf

    from toolkit.trainers.data.feed import Feed
    from toolkit.trainers.data.sources import Data
    from toolkit.trainers.learning.policy import Steer

T = TypeVar("T")
Step = Callable[..., "tuple[tf.Tensor, tf.Tensor]"]
"""What one device does with a batch: it returns the sums of the loss and of the right answers."""

WAIT_TO_BE_ENDED = 20.0
"""Seconds that a rank waits for the one that failed to speak and to end the job."""

_MODULES = {
    "single": ("single", "Single"),
    "horovod": ("horovod", "Horovod"),
    "mirrored": ("mirrored", "Mirrored"),
    "multiworker": ("multiworker", "MultiWorker"),
    "mpi-aggregate": ("mpi_aggregate", "MpiAggregate"),
    "hybrid": ("hybrid", "Hybrid"),
    "ps": ("ps", "ParameterServers"),
}
STRATEGIES = tuple(_MODULES)


class World(Protocol):
    """All ranks of a training, this one's place among them, and how they work together.

    What is not said by a strategy is that of one process with one device.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    nodes: int
    versions: dict[str, str]
    devices: int = 1
    """How many devices this rank computes on: it is dealt a batch for each."""

    wanted: int = 1
    """How many devices of the node it has to see: 0 for all GPUs that are there, or so many; without GPUs so
    many parts of the CPU."""

    @property
    def width(self) -> int:
        """How many batches all ranks take in a step."""
        return self.size * self.devices

    @property
    def alone(self) -> bool:
        """Tell whether there is no other process to be ended with this one."""
        return self.size == 1

    @property
    def averaged(self) -> int:
        """How many batches go into one update of the model; the learning rate follows it."""
        return self.width

    @property
    def summed(self) -> int:
        """By how many devices' gradients the optimizer adds up where it should take the mean."""
        return 1

    def begin(self) -> None:
        """Begin to compute, on the devices that were prepared; the first that TensorFlow is asked for."""

    def scope(self) -> "contextlib.AbstractContextManager[Any]":
        """Return the context in which the model and the optimizer are made."""
        return contextlib.nullcontext()

    def distribute(
        self, optimizer: "tf.keras.optimizers.Optimizer", compression: str = "none"
    ) -> "tf.keras.optimizers.Optimizer":
        """Return an optimizer whose ``minimize`` uses the mean of all devices' gradients."""
        return optimizer

    def share_moments(self, layer: "tf.keras.layers.BatchNormalization") -> None:
        """Let a layer normalise by the mean and variance over the batches of all devices."""

    def steered(self, steer: "Steer | None", optimizer: "tf.keras.optimizers.Optimizer") -> "Steer | None":
        """Return what sets the rate within each step; ``None`` if nothing does, or this world sees to it."""
        return steer

    def feed(self, data: "Data") -> "Feed":
        """Return how the samples come to the step."""
        from toolkit.trainers.data.feed import feed

        return feed(data)

    def compile(self, train: Callable[..., Any], signature: Sequence[Any], width: int) -> Callable[..., Any]:
        """Return what trains a portion of steps as one call; see :mod:`toolkit.trainers.training.loop`.

        ``width`` is how many samples all steps have but the last, odd one.
        """
        import tensorflow as tf

        compiled: Callable[..., Any] = tf.function(train, input_signature=signature)
        # Tracing makes the optimizer's variables too, so that they are there to be broadcast.
        compiled.get_concrete_function()  # type: ignore[attr-defined]
        return compiled

    def compile_score(self, score: Step) -> Callable[..., Any]:
        """Return what scores a batch, which every rank does as often as it likes."""
        import tensorflow as tf

        compiled: Callable[..., Any] = tf.function(score, reduce_retracing=True)
        return compiled

    def step(self, step: Step, inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Make a step on all devices of this rank, each with its part of the batch; part of a graph."""
        return step(inputs, classes)

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        """Give every rank the values of rank 0."""

    def value(self, variable: "tf.Variable") -> "numpy.ndarray":
        """Return the value of a variable, which one rank may ask for alone."""
        value: numpy.ndarray = variable.numpy()
        return value

    def put(self, variable: "tf.Variable", value: "numpy.ndarray") -> None:
        """Give a variable a value on this rank's devices, which one rank may do alone."""
        variable.assign(value)

    def total(self, values: Sequence[float]) -> list[float]:
        """Return the sums over all ranks."""
        return list(values)

    def tell(self, value: T) -> T:
        """Return the value of rank 0, on every rank."""
        return value

    def agree(self, trouble: Trouble | None) -> None:
        """Come together; if any rank is in trouble the whole job ends, and each trouble is told once."""
        if trouble:
            raise trouble

    def failing(self, error: Exception) -> None:
        """Look at an error that nobody expected; it does not return if another rank is to tell of it."""

    def leave(self, code: int) -> NoReturn:
        """End this rank at the same moment as all others, which call this too."""
        sys.exit(code)

    def abort(self, code: int) -> NoReturn:
        """End all ranks at once, this one included."""
        os._exit(code)


def open_world(strategy: str, spread: RankSpread = PLAIN) -> World:
    """Join the ranks of this job.

    Raises:
        Trouble: if they cannot be joined, or are not those that were started.
    """
    if wrong := spread.misplaced(strategy):
        complain_once(wrong)
    module, name = _MODULES[strategy]
    world: World = getattr(importlib.import_module(f"toolkit.trainers.strategies.{module}"), name)(spread)
    return world


def complain_once(message: str) -> NoReturn:
    """Refuse to train in processes that do not know of each other; only the first one speaks."""
    if started_rank(os.environ) == 0:
        raise Trouble(message)
    # A launcher ends all ranks with the first one that fails; that one must have spoken by then.
    time.sleep(WAIT_TO_BE_ENDED)
    os._exit(2)
