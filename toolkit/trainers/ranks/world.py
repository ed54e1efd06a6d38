"""The interface of a way to distribute a training over ranks, and the choice between them.

A rank is a process. A rank computes on one or several devices; a step takes a batch for each device of each
rank.
"""

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from toolkit.trainers.kinds import FrameworkName, Steer, Step
from toolkit.trainers.ranks.launcher import started_rank
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.strategies import STRATEGIES
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf

    from toolkit.trainers.data.feed import Feed
    from toolkit.trainers.data.sources import Data

T = TypeVar("T")

WAIT_TO_BE_ENDED = 20.0
"""Seconds that a rank waits for the failed rank to report and to stop the job."""


class World(Protocol):
    """All ranks of a training, this rank's place among them, and how they work together.

    The defaults are right for one process with one device.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    nodes: int
    versions: dict[str, str]
    framework: FrameworkName = "tensorflow"
    """What computes a step."""

    devices: int = 1
    """The number of devices of this rank; it is assigned a batch for each."""

    wanted: int = 1
    """The number of devices that it must see on the node: 0 for all GPUs, or this many; without GPUs this
    many parts of the CPU.
    """

    @property
    def width(self) -> int:
        """The number of batches that all ranks take in a step."""
        return self.size * self.devices

    @property
    def alone(self) -> bool:
        """Whether no other process must be stopped with this one."""
        return self.size == 1

    @property
    def averaged(self) -> int:
        """The number of batches in one update of the model; the learning rate depends on it."""
        return self.width

    @property
    def summed(self) -> int:
        """The number of devices whose gradients the optimizer sums up, where it should take the mean."""
        return 1

    def begin(self) -> None:
        """Start computing on the prepared devices; the first call to TensorFlow."""

    def scope(self) -> "contextlib.AbstractContextManager[Any]":
        """Return the context in which the model and the optimizer are made."""
        return contextlib.nullcontext()

    def distribute(
        self, optimizer: "tf.keras.optimizers.Optimizer", compression: str = "none"
    ) -> "tf.keras.optimizers.Optimizer":
        """Return an optimizer whose ``minimize`` uses the mean of all devices' gradients."""
        return optimizer

    def share_moments(self, layer: "tf.keras.layers.BatchNormalization") -> None:
        """Make a layer normalise by the mean and variance over the batches of all devices."""

    def steered(self, steer: Steer | None, optimizer: "tf.keras.optimizers.Optimizer") -> Steer | None:
        """Return what sets the rate in each step; ``None`` if it is constant or this world sets it."""
        return steer

    def feed(self, data: "Data") -> "Feed":
        """Return how the samples reach the step."""
        from toolkit.trainers.data.feed import feed

        return feed(data)

    def compile(self, train: Callable[..., Any], signature: Sequence[Any], width: int) -> Callable[..., Any]:
        """Return a function that trains a portion of steps as one call; see
        :mod:`toolkit.trainers.training.loop`.

        ``width`` is the number of samples of all steps but the last, smaller one.
        """
        import tensorflow as tf

        compiled: Callable[..., Any] = tf.function(train, input_signature=signature)
        # Tracing creates the optimizer's variables too, so that they can be broadcast.
        compiled.get_concrete_function()  # type: ignore[attr-defined]
        return compiled

    def compile_score(self, score: Step) -> Callable[..., Any]:
        """Return a function that scores a batch; ranks may call it any number of times."""
        import tensorflow as tf

        compiled: Callable[..., Any] = tf.function(score, reduce_retracing=True)
        return compiled

    def step(self, step: Step, inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Make a step on all devices of this rank, each with its part of the batch; part of a graph."""
        return step(inputs, classes)

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        """Give every rank the values of rank 0."""

    def value(self, variable: "tf.Variable") -> "numpy.ndarray":
        """Return the value of a variable; one rank may call it alone."""
        value: numpy.ndarray = variable.numpy()
        return value

    def put(self, variable: "tf.Variable", value: "numpy.ndarray") -> None:
        """Set a variable on this rank's devices; one rank may call it alone."""
        variable.assign(value)

    def total(self, values: Sequence[float]) -> list[float]:
        """Return the sums over all ranks."""
        return list(values)

    def tell(self, value: T) -> T:
        """Return the value of rank 0, on every rank."""
        return value

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks in order of the ranks, on every rank."""
        return [value]

    def agree(self, trouble: Trouble | None) -> None:
        """Wait for all ranks; if any rank has a fault, report each fault once and stop the job.

        The other ranks wait until the job is stopped, and stop it themselves if it is not.

        Raises:
            Trouble: on the lowest rank that has the same fault.
        """
        own = (trouble.message, trouble.code) if trouble else None
        faults = self.gather(own)
        if not any(faults):
            return
        if trouble and faults.index(own) == self.rank:
            raise trouble
        time.sleep(WAIT_TO_BE_ENDED)
        self.abort(1)

    def failing(self, error: Exception) -> None:
        """Handle an unexpected error; do not return if another rank reports it."""

    def leave(self, code: int) -> NoReturn:
        """Exit this rank at the same moment as all others, which call this too."""
        sys.exit(code)

    def abort(self, code: int) -> NoReturn:
        """Stop all ranks at once, this one included."""
        os._exit(code)


def open_world(strategy: str, spread: RankSpread = PLAIN) -> World:
    """Join the ranks of this job.

    Raises:
        Trouble: if the ranks cannot be joined, or their number differs from the started number.
    """
    if wrong := spread.misplaced(strategy):
        complain_once(wrong)
    row = STRATEGIES[strategy]
    module = importlib.import_module(f"toolkit.trainers.strategies.{row.module}")
    world: World = getattr(module, row.world)(spread)
    world.framework = row.framework
    return world


def complain_once(message: str) -> NoReturn:
    """Refuse to train in processes that are not connected; only the first one prints the message."""
    if started_rank(os.environ) == 0:
        raise Trouble(message)
    # A launcher stops all ranks at the first failure, so rank 0 must have printed it by then.
    time.sleep(WAIT_TO_BE_ENDED)
    os._exit(2)
