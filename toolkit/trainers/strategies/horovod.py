"""Ranks that average their gradients by Horovod."""

import contextlib
import importlib
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

from toolkit.trainers.ranks.launcher import started_size
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.ranks.world import WAIT_TO_BE_ENDED, World, complain_once
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    from types import ModuleType

    import tensorflow as tf

T = TypeVar("T")


class Horovod(World):
    """Ranks that average their gradients by Horovod, over MPI or Gloo as the launcher set it up."""

    def __init__(self, _: RankSpread = PLAIN) -> None:
        # The default of 1 ms is most of what the allreduce of a small network takes; 0.1 ms is what a
        # message takes. Whoever sets it knows better; autotune leaves alone what is set.
        if "HOROVOD_AUTOTUNE" not in os.environ:
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
        time.sleep(WAIT_TO_BE_ENDED)
        self.abort(1)

    def leave(self, code: int) -> NoReturn:
        # srun and mpirun end the others with the first rank that fails, and srun then reports the signal and
        # not the code. So no rank goes before all have come here, and none is slowed by Python's end.
        # The first that shuts Horovod down ends MPI for all: one that still writes could not even abort then.
        self.total([0.0])
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
