"""TensorFlow strategy ``horovod``: Horovod averages the gradients of all ranks."""

import contextlib
import importlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from toolkit.trainers.ranks.launcher import started_size
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.ranks.world import World, complain_once
from toolkit.trainers.start_marks import mark
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    from types import ModuleType

    import tensorflow as tf

T = TypeVar("T")


class Horovod(World):
    """Ranks whose gradients Horovod averages, over MPI or Gloo, depending on the launcher's variables."""

    def __init__(self, _: RankSpread = PLAIN) -> None:
        # Horovod's default cycle time of 1 ms dominates the allreduce of a small network, in which a message
        # takes 0.1 ms. Keep a value that the user set. With autotuning, set nothing, because Horovod tunes
        # only settings that have no value.
        if "HOROVOD_AUTOTUNE" not in os.environ:
            os.environ.setdefault("HOROVOD_CYCLE_TIME", "0.1")
        # Let Open MPI yield the core while Horovod's thread polls for messages. Otherwise, if there are few
        # cores, the polling takes time from the computation. With 2 ranks on 2 busy cores, this setting makes
        # the training 2 to 5 times as fast.
        os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
        try:
            import horovod
            import horovod.tensorflow.keras as hvd
        except ImportError as error:
            raise Trouble(f"Horovod for TensorFlow cannot be loaded: {error}", code=3) from None
        mark("imports")
        hvd.init()
        self._hvd = hvd
        self.rank, self.size = hvd.rank(), hvd.size()
        self.local_rank, self.local_size = hvd.local_rank(), hvd.local_size()
        self.nodes = hvd.cross_size()
        self.versions = {"horovod": horovod.__version__}
        if hvd.mpi_enabled():
            self.versions["mpi"] = _mpi_version()
        if self.size < started_size(os.environ):
            complain_once(split_world(self.size, started_size(os.environ)))

    def distribute(
        self, optimizer: "tf.keras.optimizers.Optimizer", compression: str = "none"
    ) -> "tf.keras.optimizers.Optimizer":
        return self._hvd.DistributedOptimizer(
            optimizer, compression=getattr(self._hvd.Compression, compression)
        )

    def share_moments(self, layer: "tf.keras.layers.BatchNormalization") -> None:
        from horovod.tensorflow import allreduce

        from toolkit.trainers.learning.norms import averaging

        averaging(layer, allreduce)

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        from horovod.tensorflow import broadcast_variables

        broadcast_variables(list(variables), root_rank=0)

    def total(self, values: Sequence[float]) -> list[float]:
        import numpy as np
        from horovod.tensorflow import Sum, allreduce

        # Use float64, because float32 is not exact for large numbers of samples.
        sums = allreduce(np.asarray(values, dtype=np.float64), op=Sum, name="total")
        return [float(value) for value in sums.numpy()]

    def tell(self, value: T) -> T:
        from horovod.tensorflow import broadcast_object

        # Give the message a name. Otherwise, Horovod uses the name of the value's type, which may differ on
        # another rank.
        told: T = broadcast_object(value, root_rank=0, name="tell")
        return told

    def gather(self, value: T) -> list[T]:
        if self.size == 1:
            return [value]
        from horovod.tensorflow import allgather_object

        values: list[T] = allgather_object(value, name="gather")
        return values

    def leave(self, code: int) -> NoReturn:
        # srun and mpirun stop all ranks when the first rank fails, and srun then reports the signal instead
        # of the exit status. Therefore no rank exits before all ranks have arrived here, and os._exit skips
        # Python's slow shutdown. The first rank that shuts Horovod down finalizes MPI for all ranks. After
        # that, a rank that is still writing could not even abort the job.
        self.total([0.0])
        self._hvd.shutdown()
        os._exit(code)

    def abort(self, code: int) -> NoReturn:
        # Without mpi4py, or with Gloo, this exit status makes the launcher stop the other ranks.
        with contextlib.suppress(ImportError):
            if self._hvd.mpi_enabled():
                _mpi().COMM_WORLD.Abort(code)
        os._exit(code)


def split_world(size: int, started: int) -> str:
    """Return the error message for a launcher that started ``started`` processes, while MPI reports a world
    of ``size`` ranks.

    Ranks in separate worlds would train independently and overwrite each other's output. A world with more
    than ``started`` ranks is correct, because ``started`` may come from the variable of another launcher.
    """
    each = (
        "each rank is a world of size 1"
        if size == 1
        else (f"the job consists of several worlds of size {size}")
    )
    return (
        f"MPI reports a world of {size} where {started} processes were started: {each}; see `toolkit doctor`"
    )


def is_lost_rank(error: Exception) -> bool:
    """Return whether an error means a lost rank. Horovod reports a lost rank with one of several TensorFlow
    error classes.

    Horovod's errors for mismatched tensors have other classes, and mean a fault in a trainer.
    """
    kinds = {"UnknownError", "AbortedError", "CancelledError", "HorovodInternalError"}
    return type(error).__name__ in kinds and "Horovod" in str(error)


def _mpi() -> "ModuleType":
    """Import and return the module ``mpi4py.MPI``, without starting MPI, because Horovod starts and finalizes
    MPI.
    """
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
