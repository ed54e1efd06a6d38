"""The ways to distribute a training: what differs between one process and many ranks, and nothing else."""

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol, TypeVar

from toolkit.trainers.launcher import started_rank, started_size
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    from types import ModuleType

    import tensorflow as tf

Strategy = Literal["single", "horovod"]
T = TypeVar("T")

_WAIT_TO_BE_ENDED = 20.0
"""Seconds that a rank waits for the one that failed to speak and to end the job."""


class World(Protocol):
    """All ranks of a training and this one's place among them."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    nodes: int
    versions: dict[str, str]

    def distribute(self, optimizer: "tf.keras.optimizers.Optimizer") -> "tf.keras.optimizers.Optimizer":
        """Return an optimizer whose ``minimize`` uses the mean of all ranks' gradients."""

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        """Give every rank the values of rank 0."""

    def total(self, values: Sequence[float]) -> list[float]:
        """Return the sums over all ranks."""

    def tell(self, value: T) -> T:
        """Return the value of rank 0, on every rank."""

    def agree(self, trouble: Trouble | None) -> None:
        """Come together; if any rank is in trouble the whole job ends, and each trouble is told once."""

    def leave(self, code: int) -> NoReturn:
        """End this rank at the same moment as all others, which call this too."""

    def abort(self, code: int) -> NoReturn:
        """End all ranks at once, this one included."""


class Single:
    """One process that trains alone."""

    rank = local_rank = 0
    size = local_size = nodes = 1

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}
        if started_size(os.environ) > 1:
            _complain_once(
                f"{started_size(os.environ)} processes were started, but --strategy single trains in one; "
                "use --strategy horovod, or start one"
            )

    def distribute(self, optimizer: "tf.keras.optimizers.Optimizer") -> "tf.keras.optimizers.Optimizer":
        return optimizer

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        pass

    def total(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def tell(self, value: T) -> T:
        return value

    def agree(self, trouble: Trouble | None) -> None:
        if trouble:
            raise trouble

    def leave(self, code: int) -> NoReturn:
        sys.exit(code)

    def abort(self, code: int) -> NoReturn:
        os._exit(code)


class Horovod:
    """Ranks that average their gradients by Horovod, over MPI or Gloo as the launcher set it up."""

    def __init__(self) -> None:
        # The default of 1 ms is most of what the allreduce of a small network takes; 0.1 ms is what a
        # message takes. Whoever sets it knows better.
        os.environ.setdefault("HOROVOD_CYCLE_TIME", "0.1")
        # Horovod's thread waits for messages by asking for them; where a rank has few cores, that takes
        # the core from the computation. Measured, 2 ranks on 2 busy cores: 2 to 5 times the images/s.
        os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
        try:
            import horovod
            import horovod.tensorflow.keras as hvd
        except ImportError as error:
            raise Trouble(f"Horovod for TensorFlow cannot be loaded: {error}", code=3) from None
        hvd.init()
        self._hvd = hvd
        self.rank, self.size = hvd.rank(), hvd.size()
        self.local_rank, self.local_size = hvd.local_rank(), hvd.local_size()
        self.nodes = hvd.cross_size()
        self.versions = {"horovod": horovod.__version__}
        if hvd.mpi_enabled():
            self.versions["mpi"] = _mpi_version()
        if self.size < started_size(os.environ):
            _complain_once(split_world(self.size, started_size(os.environ)))

    def distribute(self, optimizer: "tf.keras.optimizers.Optimizer") -> "tf.keras.optimizers.Optimizer":
        return self._hvd.DistributedOptimizer(optimizer)

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        from horovod.tensorflow import broadcast_variables

        broadcast_variables(list(variables), root_rank=0)

    def total(self, values: Sequence[float]) -> list[float]:
        import numpy as np
        from horovod.tensorflow import Sum, allreduce

        # Counts of samples exceed what a float32 holds exactly.
        sums = allreduce(np.asarray(values, dtype=np.float64), op=Sum, name="total")
        return [float(value) for value in sums.numpy()]

    def tell(self, value: T) -> T:
        from horovod.tensorflow import broadcast_object

        # Without a name it is that of the type, which is not the same on all ranks.
        told: T = broadcast_object(value, root_rank=0, name="tell")
        return told

    def agree(self, trouble: Trouble | None) -> None:
        if self.size == 1:
            if trouble:
                raise trouble
            return
        from horovod.tensorflow import allgather_object

        told = trouble and (trouble.message, trouble.code)
        everyone = allgather_object(told, name="agree")
        if not any(everyone):
            return
        if trouble and everyone.index(told) == self.rank:
            raise trouble
        # A lower rank says the same, or this one is well: the one that speaks ends the job for all.
        time.sleep(_WAIT_TO_BE_ENDED)
        self.abort(1)

    def leave(self, code: int) -> NoReturn:
        # srun and mpirun end the others with the first rank that fails, and srun then reports the signal and
        # not the code. So no rank goes before all have said good-bye, and none is slowed by Python's end.
        self._hvd.shutdown()
        os._exit(code)

    def abort(self, code: int) -> NoReturn:
        # Without mpi4py, or under Gloo, the launcher ends the others for this one's exit status.
        with contextlib.suppress(ImportError):
            if self._hvd.mpi_enabled():
                _mpi().COMM_WORLD.Abort(code)
        os._exit(code)


def split_world(size: int, started: int) -> str:
    """Say that there are several worlds, each of which would train all and write over the others' output.

    A world that is larger than what was started is none: a variable is then that of another launcher.
    """
    each = "every rank is alone" if size == 1 else f"the job has come apart into worlds of {size}"
    return (
        f"MPI reports a world of {size} where {started} processes were started: {each}; see `toolkit doctor`"
    )


def separated(error: Exception) -> bool:
    """Tell whether it says that another rank is gone; Horovod has several errors for that, of TensorFlow's.

    Those for tensors that do not match are of other classes, and faults of a trainer.
    """
    kinds = {"UnknownError", "AbortedError", "CancelledError", "HorovodInternalError"}
    return type(error).__name__ in kinds and "Horovod" in str(error)


def open_world(strategy: Strategy) -> World:
    """Join the ranks of this job."""
    return Horovod() if strategy == "horovod" else Single()


def _mpi() -> "ModuleType":
    """Return mpi4py's MPI as a guest of the MPI that Horovod started and will end."""
    import mpi4py

    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    return importlib.import_module("mpi4py.MPI")


def _mpi_version() -> str:
    from toolkit.trainers.preflight import library_name

    try:
        return library_name(_mpi().Get_library_version())
    except ImportError:
        return "unknown: mpi4py is not installed"


def _complain_once(message: str) -> NoReturn:
    """Refuse to train in processes that do not know of each other; only the first one speaks."""
    if started_rank(os.environ) == 0:
        raise Trouble(message)
    # A launcher ends all ranks with the first one that fails; that one must have spoken by then.
    time.sleep(_WAIT_TO_BE_ENDED)
    os._exit(2)
