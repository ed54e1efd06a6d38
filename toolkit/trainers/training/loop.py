"""The training loop for TensorFlow. Each call of the compiled training function makes several training steps,
which together take about two seconds.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.trainers.data.faults import reading
from toolkit.trainers.data.feed import Feed, Portion, Portions, Stream
from toolkit.trainers.data.sources import Data, Samples
from toolkit.trainers.kinds import Steer, Step
from toolkit.trainers.learning.build import build
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.learning.step import scoring
from toolkit.trainers.ranks.world import World
from toolkit.trainers.training.metrics import write_whole
from toolkit.trainers.training.rounds import Rounds, Score
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf

_EVALUATION_BATCH = 1000
_STREAMED_BATCH = 64

Augment = Callable[["tf.Tensor", "tf.Tensor"], "tf.Tensor"]
"""A function that changes a batch of inputs at random, in a TensorFlow graph. The second argument is a random
seed: a tensor of two int32 values.
"""


class Loop(Rounds):
    """Trains a Keras model on this rank's share of the samples. All ranks make their training
    steps together.
    """

    def __init__(
        self,
        model: "Callable[[], tf.keras.Model]",
        data: Data,
        world: World,
        learning: Learning,
        *,
        batch: int,
        epochs: int,
        seed: int,
        augment: Augment | None = None,
    ) -> None:
        """Build and compile the model, optimizer and step, and copy rank 0's variables to all ranks.

        ``batch`` is the batch size of each device. ``epochs`` is the total number of epochs.
        """
        super().__init__(data, world, batch=batch * learning.accumulate, seed=seed)
        self._build = model
        self.model, optimizer, step = build(model, world, learning, batch)
        self._optimizer = optimizer
        self._feed = world.feed(data)
        steer = world.steered(learning.course(world, batch, epochs), optimizer)
        change = _change(augment, seed, world.rank) if augment else None
        train = _steps(self._feed, step, world, optimizer, steer, change)
        self._train = world.compile(train, _signature(self._feed), self._batch * world.devices)
        self._score = world.compile_score(scoring(self.model))
        self._variables = [*self.model.variables, *optimizer.variables(), *learning.kept(optimizer)]
        world.broadcast(self._variables)

    def _open(self, table: "numpy.ndarray", epoch: int) -> Portions:
        return self._feed.open(table, epoch)

    def _make_steps(
        self, portion: Portion, steps: int, epochs: float, step_share: float, loss: float, right: int
    ) -> tuple[float, int]:
        sums = self._train(portion, steps, epochs, step_share, loss, right)
        # float() waits until the device has computed the value.
        return float(sums[0]), int(sums[1])

    def _seconds_waited(self) -> float | None:
        return self._feed.waited()

    def timed(self, steps: int, batch: int = 0) -> tuple[float, Score]:
        """Make ``steps`` training steps. Return the time in seconds until all ranks have finished the steps,
        and the score over the samples of these steps.

        Each device processes ``batch`` samples per step. If ``batch`` is 0, each device processes as many
        samples per step as in :meth:`epoch`.
        """
        import numpy as np

        batch = batch or self._batch
        width = batch * self._world.devices
        table = (np.arange(steps * width, dtype=np.int32) % self._count).reshape(steps, width)
        portion = self._feed.open(table).take(0, steps)
        self._world.total([0.0])
        begun = time.monotonic()
        with reading(self._data, table.flat):
            loss, right = self._train(portion, steps, 0.0, 0.0, 0.0, 0)
        # float() waits until the device has made the last training step.
        loss, right = self._world.total([float(loss), float(right)])
        seconds = time.monotonic() - begun
        images = steps * batch * self._world.width
        return seconds, Score(loss / images, right / images)

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last training step."""
        return float(self._world.value(self._optimizer.learning_rate))

    @property
    def parameters(self) -> int:
        """The number of the model's parameters."""
        return int(self.model.count_params())

    def state(self) -> "list[numpy.ndarray]":
        """Return the variables of model and optimizer as arrays, in a fixed order."""
        return [self._world.value(variable) for variable in self._variables]

    def portable(self) -> "tf.keras.Model":
        """Return a copy of the model for Keras to save. All variables of the copy are in this process. With
        the strategy ``ps``, the variables of the original are on the parameter servers.
        """
        model = self._build()
        for variable, theirs in zip(model.variables, self.model.variables, strict=True):
            variable.assign(self._world.value(theirs))
        return model

    def save(self, path: Path) -> None:
        """Write the model to a file in Keras's format."""
        write_whole(path, self.portable().save)

    def restore(self, arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Load a state of model and optimizer on all ranks. Only rank 0 passes the state in ``arrays``.

        Raises:
            Trouble: if the shapes or types of the arrays differ from this model's state.
        """
        trouble = None
        if arrays is not None:
            theirs = [(array.shape, array.dtype.name) for array in arrays]
            ours = [(tuple(one.shape), one.dtype.name) for one in self._variables]
            if theirs == ours:
                for variable, array in zip(self._variables, arrays, strict=True):
                    self._world.put(variable, array)
            else:
                trouble = Trouble("the checkpoint belongs to another model; start again with --fresh")
        self._world.agree(trouble)
        self._world.broadcast(self._variables)

    def evaluate(self, data: Data) -> Score:
        """Return the model's score on ``data``. Each rank evaluates a part of the samples."""
        rank, size = self._world.rank, self._world.size
        loss = right = count = 0.0
        for inputs, classes in _batches(data, rank, size):
            more, hits = self._score(inputs, classes)
            loss, right, count = loss + float(more), right + float(hits), count + len(classes)
        return self._score_all([loss, right, count])


def _batches(data: Data, rank: int, size: int) -> Iterator[tuple[Any, Any]]:
    """Yield this rank's share of the evaluation samples in batches: the inputs and the classes."""
    import numpy as np

    if isinstance(data, Samples):
        inputs, classes = data.inputs[rank::size], data.classes[rank::size]
        for at in range(0, len(classes), _EVALUATION_BATCH):
            yield inputs[at : at + _EVALUATION_BATCH], classes[at : at + _EVALUATION_BATCH]
        return
    numbers = np.arange(rank, len(data), size)
    whole = len(numbers) // _STREAMED_BATCH * _STREAMED_BATCH
    for table in (numbers[:whole].reshape(-1, _STREAMED_BATCH), numbers[whole:].reshape(1, -1)):
        if not table.size:
            continue
        batches = Stream(data, table).take(0, len(table))
        for row in table:
            with reading(data, row):
                batch = next(batches)
            yield batch


def _change(augment: Augment, seed: int, rank: int) -> "Callable[[tf.Tensor, tf.Tensor], tf.Tensor]":
    """Return a function that augments a batch. The returned function has two arguments: the inputs, and the
    training's progress in epochs. The returned function computes its random seed from ``seed``, ``rank`` and
    the progress.
    """
    import tensorflow as tf

    def change(inputs: "tf.Tensor", epochs: "tf.Tensor") -> "tf.Tensor":
        return augment(inputs, tf.bitcast(epochs, tf.int32) + tf.constant([seed, rank]))

    return change


def _steps(
    source: Feed,
    step: Step,
    world: World,
    optimizer: "tf.keras.optimizers.Optimizer",
    steer: Steer | None,
    change: "Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None",
) -> Callable[..., "tuple[tf.Tensor, tf.Tensor]"]:
    """Return a function that trains on a portion, which is the input of several steps. The returned function
    returns the new sum of losses and the new number of correct predictions.

    The first arguments of the returned function are the portion and its number of steps. The next arguments
    are the number of epochs trained before the portion, and the fraction of an epoch that one step covers.
    The last two arguments are the sum of losses and the number of correct predictions so far. TensorFlow
    compiles the returned function to a graph.
    """
    import tensorflow as tf

    def train(
        portion: Portion,
        steps: "tf.Tensor",
        epochs: "tf.Tensor",
        step_share: "tf.Tensor",
        loss: "tf.Tensor",
        right: "tf.Tensor",
    ) -> "tuple[tf.Tensor, tf.Tensor]":
        for number in tf.range(steps):
            at = epochs + step_share * tf.cast(number, tf.float64)
            if steer is not None:
                steer(optimizer, at)
            inputs, classes = source.batch(portion, number)
            if change is not None:
                inputs = change(inputs, at)
            more, hits = world.step(step, inputs, classes)
            loss, right = loss + more, right + hits
        return loss, right

    return train


def _signature(source: Feed) -> list[Any]:
    import tensorflow as tf

    scalars = [tf.TensorSpec((), kind) for kind in (tf.int32, tf.float64, tf.float64, tf.float64, tf.int32)]
    return [source.signature, *scalars]
