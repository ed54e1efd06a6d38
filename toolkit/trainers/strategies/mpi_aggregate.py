"""TensorFlow strategy ``mpi-aggregate``: :mod:`toolkit.trainers.ranks.aggregate` averages gradients."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from toolkit.trainers.ranks import aggregate
from toolkit.trainers.ranks.launcher import started_size
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.ranks.world import World, complain_once
from toolkit.trainers.strategies.horovod import split_world

if TYPE_CHECKING:
    import tensorflow as tf

T = TypeVar("T")

_FOREVER = 1 << 62
"""A number of training steps that no training reaches."""


class MpiAggregate(World):
    """All ranks of ``MPI.COMM_WORLD``. Each rank averages gradients with one team (a group of threads) of
    :mod:`toolkit.trainers.ranks.aggregate`.
    """

    def __init__(self, spread: RankSpread = PLAIN) -> None:
        aggregate.init_mpi()
        from mpi4py import MPI

        from toolkit.trainers.preflight import library_name

        comm = self._comm = aggregate.communicator()
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        if self.size < started_size(os.environ):
            complain_once(split_world(self.size, started_size(os.environ)))
        node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = node.Get_rank(), node.Get_size()
        self.nodes = comm.allreduce(int(self.local_rank == 0))
        self.versions = {"mpi": library_name(MPI.Get_library_version())}
        self._ksteps = _FOREVER if spread.ksteps < 0 else spread.ksteps
        self._teams = False

    def distribute(
        self, optimizer: "tf.keras.optimizers.Optimizer", compression: str = "none"
    ) -> "tf.keras.optimizers.Optimizer":
        return averaging(optimizer, self._average_gradients)

    def _average_gradients(self, gradients: "list[tf.Tensor]") -> "list[tf.Tensor]":
        if not self._teams:
            elements = sum(one.shape.num_elements() for one in gradients)
            aggregate.init(1, 1, elements, "tensorflow")
            aggregate.config_team(0, 0, self._ksteps, _FOREVER)
            self._teams = True
        return aggregate.gradients(gradients, 0)

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        for variable, value in zip(variables, aggregate.broadcast(variables), strict=True):
            self.put(variable, value)

    def total(self, values: Sequence[float]) -> list[float]:
        import numpy as np
        from mpi4py import MPI

        sums = np.asarray(values, dtype=np.float64)
        self._comm.Allreduce(MPI.IN_PLACE, sums, MPI.SUM)
        return [float(value) for value in sums]

    def tell(self, value: T) -> T:
        told: T = self._comm.bcast(value)
        return told

    def gather(self, value: T) -> list[T]:
        values: list[T] = self._comm.allgather(value)
        return values

    def leave(self, code: int) -> NoReturn:
        from mpi4py import MPI

        aggregate.barrier()
        aggregate.finalize()
        # Finalize MPI before the exit. Otherwise, srun reports the rank as failed.
        MPI.Finalize()
        os._exit(code)

    def abort(self, code: int) -> NoReturn:
        from mpi4py import MPI

        MPI.COMM_WORLD.Abort(code)
        os._exit(code)


def averaging(optimizer: Any, average: Any) -> Any:  # noqa: ANN401 - the optimizer gets a class made below
    """Change a legacy Keras optimizer so that it replaces its gradients with the results of ``average``.
    Return the optimizer. ``average`` is a function that returns the mean of each gradient over all ranks.
    """
    base = type(optimizer)
    compute = base._compute_gradients  # noqa: SLF001 - only legacy optimizers have it

    def _compute_gradients(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        pairs = compute(self, *args, **kwargs)
        found = [number for number, (gradient, _) in enumerate(pairs) if gradient is not None]
        for number, mean in zip(found, average([pairs[number][0] for number in found]), strict=True):
            pairs[number] = (mean, pairs[number][1])
        return pairs

    optimizer.__class__ = type(base.__name__, (base,), {"_compute_gradients": _compute_gradients})
    return optimizer
