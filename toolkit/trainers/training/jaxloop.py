"""The training loop for JAX. One compiled step runs on all ranks together, and each rank has a part of the
batch.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.trainers.data.sources import Data, Samples
from toolkit.trainers.learning import jaxoptimizers
from toolkit.trainers.learning.draws import fold_seed
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.models.jaxlayers import Array, JaxModel
from toolkit.trainers.training.metrics import write_whole
from toolkit.trainers.training.rounds import Rounds, RowTable, Score
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import jax
    import numpy

    from toolkit.trainers.strategies.jax import DistributedJax

_EVALUATION_BATCH = 1000

JaxAugment = Callable[[Array, "jax.Array"], Array]
"""A function that changes a batch of inputs at random, as part of a compiled step. The second argument is a
JAX random key.
"""

Values = tuple[Any, Any, Any]
"""Three trees of arrays: the model's parameters, the model's state, and the optimizer's state."""


class JaxLoop(Rounds):
    """Trains a JAX model on this rank's share of the samples. All ranks make their training steps together.

    XLA compiles the training step for the batch of all ranks. The compiled training step averages gradients
    over all ranks, computes batch normalisation over the whole batch, and draws the same random numbers for
    any number of ranks.
    """

    SUMS_ALL = True

    def __init__(
        self,
        model: Callable[[], JaxModel],
        data: Samples,
        world: "DistributedJax",
        learning: Learning,
        *,
        batch: int,
        epochs: int,
        seed: int,
        augment: JaxAugment | None = None,
    ) -> None:
        """Build the model, optimizer and compiled step, and copy rank 0's variables to all ranks.

        ``batch`` is the batch size of each device. ``epochs`` is the total number of epochs.
        """
        import jax
        import numpy as np

        super().__init__(data, world, batch=batch * learning.accumulate, seed=seed)
        self._samples, self._learning, self._layout = data, learning, world.layout
        self._rates = learning.rates(world, batch, epochs)
        self._most = self._batch
        self._rate = float(self._rates.start if self._rates.warmup else self._rates.peak)
        self.model = model()
        parameters, state = jax.jit(self.model.init)(jax.random.key(seed))
        self._values: Values = (parameters, state, jaxoptimizers.slots(parameters, learning))
        self._load([jax.numpy.asarray(leaf) for leaf in jax.tree.leaves(self._values)])
        same = self._layout.same
        step = partial(_step, self.model, learning, augment)
        self._train = jax.jit(step, donate_argnums=0, out_shardings=(same, same, same))
        self._score = jax.jit(partial(_score, self.model), out_shardings=(same, same))
        # Compile the step for a full batch now, so that the first epoch's time excludes the compilation.
        rows = np.zeros(self._batch, np.int32)
        self._train.lower(self._values, *self._step_inputs(rows, 0.0)).compile()

    def _open(self, table: "numpy.ndarray", epoch: int) -> RowTable:
        # In a step, all ranks fill their batches up to the size of the largest batch of any rank.
        # ``table`` has a row per step. The ranks' numbers of samples can differ only in the last step of an
        # epoch. If the numbers differ, the last step has its own table with one row.
        self._most = table.shape[1]
        if len(table) == 1:
            self._most = max(self._world.gather(self._most))
        return RowTable(table)

    def _make_steps(
        self,
        portion: "numpy.ndarray",
        steps: int,
        epochs: float,
        step_share: float,
        loss: float,
        right: int,
    ) -> tuple[float, int]:
        sums = [self._step(rows, epochs + step_share * number) for number, rows in enumerate(portion)]
        # float() waits until the device has made the last training step.
        # Each sum covers all ranks, so only rank 0 adds the sum to its totals.
        found = [(float(more), int(hits)) for more, hits in sums]
        if self._world.rank:
            return loss, right
        return loss + sum(more for more, _ in found), right + sum(hits for _, hits in found)

    def _seconds_waited(self) -> float:
        # Training steps do not wait for samples, because all samples are in memory.
        return 0.0

    def _step(self, rows: "numpy.ndarray", epochs: float) -> "tuple[jax.Array, jax.Array]":
        """Update the model with the samples whose numbers are in ``rows``. Return the sum of losses and the
        number of correct predictions.

        ``epochs`` is the number of epochs trained before this step, with its fractional part, such as 2.25.
        """
        import numpy as np

        if not self._rates.constant:
            self._rate = float(self._rates.rate(np.float64(epochs), np))
        self._values, loss, right = self._train(self._values, *self._step_inputs(rows, epochs))
        return loss, right

    def _step_inputs(self, rows: "numpy.ndarray", epochs: float) -> tuple[Any, Any, Any]:
        """Return the batch of all ranks for a step, the seed of the step's random numbers, and the learning
        rate of the step.
        """
        import numpy as np

        # The seed depends only on --seed and the progress, so resuming does not change the random numbers.
        draw = np.uint32(fold_seed(self._seed, round(epochs * 1e9)))
        batch = self._batch_of(self._samples, rows, self._most, self._learning.accumulate)
        return batch, draw, np.float32(self._rate)

    def _batch_of(
        self, data: Samples, rows: "numpy.ndarray", largest: int, pieces: int
    ) -> tuple[Array, Array, Array]:
        """Return the inputs, classes and weights of a batch for all ranks, split into ``pieces`` parts.

        ``rows`` contains the indices of this rank's samples. ``largest`` is the sample count of the rank with
        the most samples in this step. All parts have the same size on all ranks. If this rank has too few
        samples to fill its parts, the method repeats samples. Repeated samples have the weight 0.
        """
        import numpy as np

        width = -(-largest // pieces)
        weights = (np.arange(pieces * width) < len(rows)).astype(np.float32)
        if len(rows) < len(weights):
            rows = np.resize(rows if len(rows) else [0], len(weights))
        inputs, classes = data.inputs[rows], data.classes[rows].astype(np.int32)
        shape = (pieces, width)
        return (
            self._layout.piece(inputs.reshape(*shape, *inputs.shape[1:])),
            self._layout.piece(classes.reshape(shape)),
            self._layout.piece(weights.reshape(shape)),
        )

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last training step."""
        return self._rate

    @property
    def parameters(self) -> int:
        """The number of the model's parameters, including the moving averages of batch normalisation."""
        import jax

        return sum(leaf.size for leaf in jax.tree.leaves(self._values[:2]))

    def state(self) -> "list[numpy.ndarray]":
        """Return the variables of model and optimizer as arrays, in a fixed order."""
        import jax
        import numpy as np

        return [np.asarray(leaf) for leaf in jax.tree.leaves(self._values)]

    def restore(self, arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Load a state of model and optimizer on all ranks. Only rank 0 passes the state in ``arrays``.

        Raises:
            Trouble: if the shapes of the arrays differ from the shapes in this model's state.
        """
        trouble, own = None, self.state()
        if arrays is not None and [one.shape for one in arrays] != [one.shape for one in own]:
            trouble = Trouble("the checkpoint belongs to another model; start again with --fresh")
        self._world.agree(trouble)
        self._load(own if arrays is None else arrays)

    def _load(self, arrays: "Sequence[numpy.ndarray]") -> None:
        """Set the variables of all ranks to rank 0's arrays."""
        import jax

        _, tree = jax.tree.flatten(self._values)
        if self._world.size > 1:
            arrays = self._layout.from_first(arrays)
        self._values = jax.tree.unflatten(tree, self._layout.on_all(list(arrays)))

    def save(self, path: Path) -> None:
        """Write parameters and state to a NumPy ``.npz`` file. The name of each array in the file is its path
        in the tree of arrays, such as ``parameters/1/weight``.
        """
        import jax
        import numpy as np

        found, _ = jax.tree_util.tree_flatten_with_path(
            dict(zip(("parameters", "state"), self._values[:2], strict=True))
        )
        named = {jax.tree_util.keystr(place, simple=True, separator="/"): leaf for place, leaf in found}
        arrays = {name: np.asarray(leaf) for name, leaf in named.items()}

        def write(temporary_path: Path) -> None:
            with temporary_path.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)

        write_whole(path, write)

    def evaluate(self, data: Data) -> Score:
        """Return the model's score on ``data``. Each rank evaluates a part of the samples."""
        import numpy as np

        if not isinstance(data, Samples):
            raise TypeError("JAX evaluates only samples in memory")
        rank, size = self._world.rank, self._world.size
        rows, each = np.arange(rank, len(data), size), -(-len(data) // size)
        sums = []
        for at in range(0, each, _EVALUATION_BATCH):
            most = min(_EVALUATION_BATCH, each - at)
            batch = self._batch_of(data, rows[at : at + most], most, 1)
            sums.append(self._score(self._values[:2], batch))
        found = np.array([(float(loss), float(right)) for loss, right in sums]).sum(0)
        own = [0.0, 0.0, 0.0] if rank else [*found.tolist(), float(len(data))]
        return self._score_all(own)


def _losses(logits: Array, classes: Array, smoothing: float) -> Array:
    """Return the cross-entropy of each sample with label smoothing."""
    import jax

    log = jax.nn.log_softmax(logits)
    hit = jax.numpy.take_along_axis(log, classes[:, None], 1)[:, 0]
    return -(1 - smoothing) * hit - smoothing * log.mean(1)


def _hits(logits: Array, classes: Array, weights: Array) -> Array:
    return ((logits.argmax(1) == classes) * weights).sum()


def _score(
    model: JaxModel, values: tuple[Any, Any], batch: tuple[Array, Array, Array]
) -> tuple[Array, Array]:
    """Return the sum of losses and the number of correct predictions for a batch that consists of one
    piece.
    """
    inputs, classes, weights = (part[0] for part in batch)
    logits, _ = model.apply(*values, inputs, None)
    return (_losses(logits, classes, 0.0) * weights).sum(), _hits(logits, classes, weights)


def _step(
    model: JaxModel,
    learning: Learning,
    augment: JaxAugment | None,
    values: Values,
    batch: tuple[Array, Array, Array],
    seed: Array,
    rate: Array,
) -> tuple[Values, Array, Array]:
    """Update the model once with the batch of all ranks. Return the new values of model and optimizer, the
    sum of losses, and the number of correct predictions.
    """
    import jax
    import jax.numpy as jnp

    parameters, state, slots = values

    def compute(parameters: Any, state: Any, piece: tuple[Array, ...], key: Array) -> Any:  # noqa: ANN401
        inputs, classes, weights = piece
        first, second = jax.random.split(key)
        logits, state = model.apply(parameters, state, augment(inputs, first) if augment else inputs, second)
        loss = (_losses(logits, classes, learning.label_smoothing) * weights).sum()
        return loss, (state, _hits(logits, classes, weights))

    gradients, loss, right = None, jnp.zeros(()), jnp.zeros(())
    # Use a Python loop over the pieces, because XLA's convolutions on CPUs are slow inside lax.scan.
    for number in range(len(batch[1])):
        key = jax.random.fold_in(jax.random.key(seed), number)
        piece = tuple(part[number] for part in batch)
        (more, (state, hits)), found = jax.value_and_grad(compute, has_aux=True)(
            parameters, state, piece, key
        )
        gradients = found if gradients is None else jax.tree.map(jnp.add, gradients, found)
        loss, right = loss + more, right + hits
    count = batch[2].sum()
    gradients = jax.tree.map(lambda one: one / count, gradients)
    parameters, slots = jaxoptimizers.update(learning, parameters, slots, gradients, rate)
    return (parameters, state, slots), loss, right
