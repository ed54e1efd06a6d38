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
        # By default, Horovod looks for gradients every 1 ms (the cycle time). This interval slows small
        # models, whose messages take only 0.1 ms.
        # With autotuning, do not set HOROVOD_CYCLE_TIME, because Horovod tunes only settings without a value.
        if "HOROVOD_AUTOTUNE" not in os.environ:
            os.environ.setdefault("HOROVOD_CYCLE_TIME", "0.1")
        # Let Open MPI give up the core while Horovod's thread waits. A busy wait slows the computation.
        # With 2 ranks on 2 busy cores, mpi_yield_when_idle makes the training 2 to 5 times as fast.
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

        # Name the message, because Horovod's default name is the value's type, which may differ by rank.
        told: T = broadcast_object(value, root_rank=0, name="tell")
        return told

    def gather(self, value: T) -> list[T]:
        if self.size == 1:
            return [value]
        from horovod.tensorflow import allgather_object

        values: list[T] = allgather_object(value, name="gather")
        return values

    def leave(self, code: int) -> NoReturn:
        # Wait until all ranks have called leave(): a launcher stops all ranks when the first rank fails.
        # The first rank that shuts Horovod down finalizes MPI for all ranks, so all ranks must have finished.
        # os._exit skips Python's slow shutdown, during which srun could stop this rank.
        self.total([0.0])
        self._hvd.shutdown()
        os._exit(code)

    def abort(self, code: int) -> NoReturn:
        # Without mpi4py, or with Gloo, the launcher stops the other ranks because of this rank's exit status.
        with contextlib.suppress(ImportError):
            if self._hvd.mpi_enabled():
                _mpi().COMM_WORLD.Abort(code)
        os._exit(code)


def split_world(size: int, processes: int) -> str:
    """Return the error message for a job in which the launcher started ``processes`` processes, but MPI
    reports a world of only ``size`` ranks.

    Ranks in separate MPI worlds would train independently and overwrite each other's output. The caller
    accepts a world with more than ``processes`` ranks, because ``processes`` may come from a variable of an
    outer launcher.
    """
    each = (
        "each rank is a world of size 1"
        if size == 1
        else (f"the job consists of several worlds of size {size}")
    )
    return (
        f"MPI reports a world of {size} where {processes} processes were started: {each}; "
        "see `toolkit doctor`"
    )


def is_lost_rank(error: Exception) -> bool:
    """Return whether an error means that another rank is lost. Horovod reports a lost rank with one of
    several TensorFlow error classes.

    For mismatched tensors, which mean a fault in a trainer, Horovod raises errors of other classes.
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
