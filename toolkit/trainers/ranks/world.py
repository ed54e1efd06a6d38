"""The interface of the strategies, which distribute a training over ranks.

A rank is a process that computes on one or several devices. In each training step, each device of each rank
processes one batch.
"""

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from toolkit.trainers.kinds import FrameworkName, Steer, Step
from toolkit.trainers.quiet import import_tensorflow
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
"""The number of seconds that a rank waits after another rank failed, so that the failed rank can report its
fault and stop the job. After this time, the waiting rank exits.
"""


class World(Protocol):
    """The ranks of a training: this rank's number, the number of ranks, and how the ranks exchange values.

    The default implementations of the methods are for a single process with one device.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    nodes: int
    versions: dict[str, str]
    framework: FrameworkName = "tensorflow"
    """The framework that computes a training step."""

    devices: int = 1
    """The number of this rank's devices. In each training step, each device computes with one batch."""

    requested_devices: int = 1
    """The number of GPUs that this rank should use, or 0 for all GPUs that the rank may use. On a node
    without GPUs, this field is the number of logical CPU devices.
    """

    @property
    def width(self) -> int:
        """The number of batches that all ranks together process in a training step."""
        return self.size * self.devices

    @property
    def alone(self) -> bool:
        """Whether this rank is the only process of the training."""
        return self.size == 1

    @property
    def averaged(self) -> int:
        """The number of devices whose gradients cause one update of the model. The learning rate depends on
        this number.
        """
        return self.width

    @property
    def summed(self) -> int:
        """The number of devices whose gradients the optimizer adds instead of averaging. Each device must
        divide its loss by this number, so that the sum of the gradients is their mean.
        """
        return 1

    def begin(self) -> None:
        """Start TensorFlow on the devices that ``prepare_devices`` has selected. TensorFlow must not compute
        anything before this call.
        """

    def scope(self) -> "contextlib.AbstractContextManager[Any]":
        """Return the context manager in which the caller must create the model and the optimizer."""
        return contextlib.nullcontext()

    def distribute(
        self, optimizer: "tf.keras.optimizers.Optimizer", compression: str = "none"
    ) -> "tf.keras.optimizers.Optimizer":
        """Return an optimizer whose ``minimize`` averages the gradients of all devices."""
        return optimizer

    def share_moments(self, layer: "tf.keras.layers.BatchNormalization") -> None:
        """Make the batch normalisation ``layer`` use the mean and variance over all devices' batches."""

    def steered(self, steer: Steer | None, optimizer: "tf.keras.optimizers.Optimizer") -> Steer | None:
        """Return ``steer``, with which the training loop sets the learning rate in each step. Return ``None``
        if the training loop must not set the learning rate.
        """
        return steer

    def feed(self, data: "Data") -> "Feed":
        """Return the feed that passes the samples of ``data`` to the training steps."""
        from toolkit.trainers.data.feed import feed

        return feed(data)

    def compile(self, train: Callable[..., Any], signature: Sequence[Any], width: int) -> Callable[..., Any]:
        """Compile the function ``train``, which makes several training steps in one call, and return the
        compiled function.

        ``signature`` is the specification of the function's arguments (see
        :mod:`toolkit.trainers.training.loop`). ``width`` is the number of samples that this rank processes
        in a training step. Only the last step of an epoch may have fewer samples.
        """
        import tensorflow as tf

        compiled: Callable[..., Any] = tf.function(train, input_signature=signature)
        # Trace the function now: tracing creates the optimizer's variables, which rank 0 broadcasts later.
        compiled.get_concrete_function()  # type: ignore[attr-defined]
        return compiled

    def compile_score(self, score: Step) -> Callable[..., Any]:
        """Return a compiled function that scores a batch. The ranks must not exchange messages in the
        compiled function, because one rank may call the function more often than another rank.
        """
        import tensorflow as tf

        compiled: Callable[..., Any] = tf.function(score, reduce_retracing=True)
        return compiled

    def step(self, step: Step, inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Make a training step inside a TensorFlow graph, and return the sum of the losses and the number of
        correct predictions. ``inputs`` and ``classes`` contain one batch for each device of this rank.
        """
        return step(inputs, classes)

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        """Copy the values of rank 0's variables to all ranks."""

    def value(self, variable: "tf.Variable") -> "numpy.ndarray":
        """Return the value of a variable. A single rank may call this method without the other ranks."""
        value: numpy.ndarray = variable.numpy()
        return value

    def put(self, variable: "tf.Variable", value: "numpy.ndarray") -> None:
        """Set a variable on this rank's devices. A single rank may call this method without the
        other ranks.
        """
        variable.assign(value)

    def total(self, values: Sequence[float]) -> list[float]:
        """Return the sums of the values over all ranks. All ranks must call this method."""
        return list(values)

    def tell(self, value: T) -> T:
        """Return rank 0's value on every rank. All ranks must call this method."""
        return value

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, in rank order, on every rank. All ranks must call this method."""
        return [value]

    def agree(self, trouble: Trouble | None) -> None:
        """Wait for all ranks. If any rank has a fault, report the fault and stop the job. If several ranks
        have the same fault, only one rank reports it.

        Ranks that do not report a fault wait until the launcher stops the job. After 20 seconds, a waiting
        rank stops the job itself.

        Raises:
            Trouble: on the rank that reports a fault, which is the lowest rank with this fault.
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
        """Handle an unexpected error on this rank. If the cause is a fault of another rank, this method may
        wait until the other rank has reported the fault, and then exit this process.
        """

    def leave(self, code: int) -> NoReturn:
        """Wait until all other ranks have also called this method, and exit this rank with
        status ``code``.
        """
        sys.exit(code)

    def abort(self, code: int) -> NoReturn:
        """Stop all ranks immediately, including this rank."""
        os._exit(code)


def open_world(strategy: str, spread: RankSpread = PLAIN) -> World:
    """Connect this process to the other ranks as a strategy requires, and return the strategy's
    :class:`World`.

    Raises:
        Trouble: if ``spread`` has an option that the strategy does not use, if the ranks cannot connect, or
            if the number of ranks differs from the number of started processes.
    """
    if wrong := spread.misplaced(strategy):
        complain_once(wrong)
    row = STRATEGIES[strategy]
    if row.framework == "tensorflow":
        import_tensorflow()
    module = importlib.import_module(f"toolkit.trainers.strategies.{row.module}")
    world: World = getattr(module, row.world)(spread)
    world.framework = row.framework
    return world


def complain_once(message: str) -> NoReturn:
    """Stop all processes of a job whose ranks are not connected yet. All processes must call this function,
    but only rank 0 prints ``message``.
    """
    if started_rank(os.environ) == 0:
        raise Trouble(message)
    # The launcher stops all ranks at the first failure, so wait until rank 0 has printed ``message``.
    time.sleep(WAIT_TO_BE_ENDED)
    os._exit(2)
