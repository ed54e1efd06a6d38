"""The training loop for PyTorch. Each rank makes steps on its own samples, and the ranks average the
gradients.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.trainers.data.sources import Data, Samples
from toolkit.trainers.learning import torchoptimizers
from toolkit.trainers.learning.draws import fold_seed
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.training.metrics import write_whole
from toolkit.trainers.training.rounds import Rounds, RowTable, Score
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy
    import torch

    from toolkit.trainers.strategies.ddp import DistributedTorch

_EVALUATION_BATCH = 1000

TorchAugment = Callable[["torch.Tensor", "torch.Generator"], "torch.Tensor"]
"""A function that changes a batch of inputs at random, with numbers from a random generator."""


class TorchLoop(Rounds):
    """Trains a PyTorch model on this rank's share of the samples. All ranks make their training steps
    together.
    """

    def __init__(
        self,
        model: "Callable[[], torch.nn.Module]",
        data: Samples,
        world: "DistributedTorch",
        learning: Learning,
        *,
        batch: int,
        epochs: int,
        seed: int,
        augment: TorchAugment | None = None,
    ) -> None:
        """Build the model and optimizer, and copy rank 0's variables to all ranks.

        ``batch`` is the batch size of each device. ``epochs`` is the total number of epochs.
        """
        import torch

        super().__init__(data, world, batch=batch * learning.accumulate, seed=seed)
        self._samples, self._learning, self._augment, self._ranks = data, learning, augment, world
        self._rates = learning.rates(world, batch, epochs)
        self.model = model().to(world.device)
        # wrapped() copies rank 0's weights to all ranks. The model that wrapped() returns averages gradients
        # over all ranks.
        self._shared = world.wrapped(self.model)
        self._optimizer = torchoptimizers.optimizer(self.model, learning, self._rates)
        self._loss = torch.nn.CrossEntropyLoss(reduction="sum", label_smoothing=learning.label_smoothing)
        self._whole: list[torch.Tensor] = []
        # From here on, each rank has a different seed, so that dropout differs between ranks.
        torch.manual_seed(fold_seed(seed, world.rank) if world.rank else seed)

    def _open(self, table: "numpy.ndarray", epoch: int) -> "RowTable":
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
        self._shared.train()
        for number, rows in enumerate(portion):
            more, hits = self._step(rows, epochs + step_share * number)
            loss, right = loss + more, right + hits
        return loss, right

    def _seconds_waited(self) -> float:
        # Training steps do not wait for samples, because all samples are in memory.
        return 0.0

    def _step(self, rows: "numpy.ndarray", epochs: float) -> tuple[float, int]:
        """Update the model with the samples whose numbers are in ``rows``. Return the sum of losses and the
        number of correct predictions.

        ``epochs`` is the number of epochs trained before this step, with its fractional part, such as 2.25.
        """
        import numpy as np

        if not self._rates.constant:
            torchoptimizers.set_rate(self._optimizer, float(self._rates.rate(np.float64(epochs), np)))
        self._optimizer.zero_grad(set_to_none=True)
        loss, right = 0.0, 0
        pieces = [piece for piece in np.array_split(rows, self._learning.accumulate) if len(piece)]
        for number, piece in enumerate(pieces):
            # All ranks exchange gradients once per step, after the last piece of the batch.
            with self._ranks.exchanging(self._shared, exchange=number + 1 == len(pieces)):
                inputs, classes = self._batch_of(piece, epochs)
                outputs = self._shared(inputs)
                total = self._loss(outputs, classes)
                (total / len(rows)).backward()
            loss, right = loss + float(total.detach()), right + int((outputs.argmax(1) == classes).sum())
        self._optimizer.step()
        return loss, right

    def _batch_of(self, rows: "numpy.ndarray", epochs: float) -> "tuple[torch.Tensor, torch.Tensor]":
        import torch

        inputs = torch.from_numpy(self._samples.inputs[rows])
        classes = torch.from_numpy(self._samples.classes[rows].astype("int64"))
        if self._augment:
            # Resuming with equally many ranks does not change this seed, so the random numbers do not change.
            draws = torch.Generator().manual_seed(
                fold_seed(self._seed, round(epochs * 1e9) * self._world.size + self._world.rank)
            )
            inputs = self._augment(inputs, draws)
        return inputs.to(self._ranks.device), classes.to(self._ranks.device)

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last training step."""
        return float(self._optimizer.param_groups[0]["lr"])

    @property
    def parameters(self) -> int:
        """The number of the model's parameters, including the moving averages of batch normalisation."""
        counted = [one for one in self.model.state_dict().values() if one.ndim]
        return sum(one.numel() for one in counted)

    def _tensors(self) -> "list[torch.Tensor]":
        """Return the tensors of model and optimizer, in a fixed order."""
        return [*self.model.state_dict().values(), *torchoptimizers.slots(self._optimizer, self._learning)]

    def collect(self) -> None:
        """Copy the values of model and optimizer to rank 0, even if each rank stores only a part of the
        values (shards). All ranks must call this method before rank 0 calls ``state`` or ``save``.
        """
        self._whole = []
        for tensor in self._tensors():
            value = self._ranks.whole(tensor)
            if self._world.rank == 0:
                self._whole.append(value.cpu())

    def state(self) -> "list[numpy.ndarray]":
        """Return the variables of model and optimizer that :meth:`collect` copied to rank 0, as arrays."""
        return [tensor.numpy() for tensor in self._whole]

    def restore(self, arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Load a state of model and optimizer on all ranks. Only rank 0 passes the state in ``arrays``.

        Raises:
            Trouble: if the shapes of the arrays differ from the shapes in this model's state.
        """
        trouble, tensors = None, self._tensors()
        if arrays is not None and [one.shape for one in arrays] != [tuple(one.shape) for one in tensors]:
            trouble = Trouble("the checkpoint belongs to another model; start again with --fresh")
        self._world.agree(trouble)
        self._ranks.load(tensors, arrays)

    def save(self, path: Path) -> None:
        """Write the model's ``state_dict`` to a file, with the values that :meth:`collect` copied."""
        import torch

        values = dict(zip(self.model.state_dict(), self._whole, strict=False))
        write_whole(path, lambda beside: torch.save(values, beside))

    def evaluate(self, data: Data) -> Score:
        """Return the model's score on ``data``. Each rank evaluates a part of the samples."""
        import torch

        if not isinstance(data, Samples):
            raise TypeError("PyTorch evaluates only samples in memory")
        rank, size = self._world.rank, self._world.size
        inputs, classes = data.inputs[rank::size], data.classes[rank::size].astype("int64")
        loss = right = 0.0
        self.model.eval()
        with torch.no_grad():
            # Make equally many forward passes on all ranks: each pass of a sharded model needs all ranks.
            for at in range(0, -(-len(data) // size), _EVALUATION_BATCH):
                rows = inputs[at : at + _EVALUATION_BATCH]
                batch = torch.from_numpy((rows if len(rows) else data.inputs[:1]).copy())
                outputs = self.model(batch.to(self._ranks.device))[: len(rows)]
                named = torch.from_numpy(classes[at : at + _EVALUATION_BATCH]).to(outputs.device)
                loss += float(torch.nn.functional.cross_entropy(outputs, named, reduction="sum"))
                right += int((outputs.argmax(1) == named).sum())
        return self._score_all([loss, right, float(len(classes))])
