"""JAX strategy ``jax``: each process computes a part of every batch, and XLA averages the gradients."""

import os
import pickle
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from toolkit.trainers.checks.node import DEVICES, openable
from toolkit.trainers.ranks.devices import choose_gpus, gpus_are_own, visible_gpus
from toolkit.trainers.ranks.launcher import first_number, started_size
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.ranks.world import World, complain_once
from toolkit.trainers.start_marks import mark
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import jax
    import numpy

T = TypeVar("T")

_JOIN = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
_JOIN_SECONDS = 300
"""The number of seconds for which a rank waits until all ranks have joined."""

_LEAST = 256
"""The smallest size of a message in bytes. Message sizes are powers of two, so that XLA compiles code for
only a few sizes.
"""


class DistributedJax(World):
    """Ranks with one device each. In a job with the launch mode ``jax``, the ranks connect through
    ``jax.distributed``.
    """

    def __init__(self, _: RankSpread = PLAIN) -> None:
        try:
            import jax
        except ImportError as error:
            raise Trouble(f"JAX cannot be loaded: {error}", code=3) from None
        self.rank, self.size = (
            first_number(os.environ, ("JAX_PROCESS_ID",), 0),
            first_number(os.environ, ("JAX_NUM_PROCESSES",), 1),
        )
        self.local_rank, self.local_size = (
            first_number(os.environ, ("LOCAL_RANK",), 0),
            first_number(os.environ, ("LOCAL_WORLD_SIZE",), 1),
        )
        self.nodes = -(-self.size // self.local_size)
        self.versions = {}
        if self.size < started_size(os.environ):
            complain_once(
                f"{started_size(os.environ)} processes were started, but JAX_NUM_PROCESSES is "
                f"{self.size}; start the processes in the launch mode jax"
            )
        if self.size > 1:
            missing = [name for name in _JOIN if not os.environ.get(name)]
            if missing:
                complain_once(f"--strategy jax: {', '.join(missing)} not set; use the launch mode jax")
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            mark("imports")
            jax.distributed.initialize(
                os.environ["JAX_COORDINATOR_ADDRESS"],
                self.size,
                self.rank,
                local_device_ids=self._own_gpus(),
                cluster_detection_method="deactivate",
                initialization_timeout=_JOIN_SECONDS,
            )

    def _own_gpus(self) -> list[int] | None:
        """Return the indices of the GPUs that this rank uses, counted among the GPUs that the rank sees.
        Return ``None`` if the rank does not see a GPU.
        """
        opens = len(openable(DEVICES))
        seen = visible_gpus(os.environ, opens)
        if not seen:
            return None
        return choose_gpus(self, seen, exclusive=gpus_are_own(os.environ, self, seen, opens))

    @cached_property
    def layout(self) -> "RankLayout":
        """The devices of all ranks, and the ways to place arrays on these devices. The first read of this
        property starts JAX's back end.
        """
        layout = RankLayout()
        if self.size > 1:
            self.versions = {"backend": "gloo" if layout.platform == "cpu" else "nccl"}
        return layout

    def total(self, values: Sequence[float]) -> list[float]:
        return [sum(parts) for parts in zip(*self.gather([float(value) for value in values]), strict=True)]

    def tell(self, value: T) -> T:
        if self.size == 1:
            return value
        text = pickle.dumps(value)
        (size,) = self.layout.from_first([_numbers(len(text))])
        (row,) = self.layout.from_first([_row(text, int(size[0]))])
        told: T = pickle.loads(bytes(row)[: int(size[0])])
        return told

    def gather(self, value: T) -> list[T]:
        if self.size == 1:
            return [value]
        text = pickle.dumps(value)
        sizes = self.layout.rows(_numbers(len(text)))
        rows = self.layout.rows(_row(text, int(sizes.max())))
        return [pickle.loads(bytes(row)[: int(size)]) for row, (size,) in zip(rows, sizes, strict=True)]

    def leave(self, code: int) -> NoReturn:
        # Let shutdown() wait for all ranks, because other ranks may still need JAX's coordinator on rank 0.
        if self.size > 1:
            import jax

            jax.distributed.shutdown()
        os._exit(code)


class RankLayout:
    """One device of each process, and two ways to place an array on these devices: a copy on each device, or
    a part on each device.
    """

    def __init__(self) -> None:
        import jax
        import numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        first: dict[int, jax.Device] = {}
        for device in jax.devices():
            first.setdefault(device.process_index, device)
        mesh = Mesh(np.array([first[process] for process in sorted(first)]), ("ranks",))
        self.platform = str(first[0].platform)
        self._alone = len(first) == 1
        self.same = NamedSharding(mesh, PartitionSpec())
        self.split = NamedSharding(mesh, PartitionSpec("ranks"))
        self.pieces = NamedSharding(mesh, PartitionSpec(None, "ranks"))
        self._all = jax.jit(lambda rows: rows, out_shardings=self.same)
        self._sum = jax.jit(lambda rows: rows.sum(0, dtype=rows.dtype), out_shardings=self.same)

    def piece(self, array: "numpy.ndarray") -> "jax.Array | numpy.ndarray":
        """Return one JAX array that joins the ``array`` of each rank along the second axis. Each part is on
        the device of its rank.
        """
        import jax

        if self._alone:
            # Return the NumPy array, because a compiled function copies it faster than JAX's function below.
            return array
        return jax.make_array_from_process_local_data(self.pieces, array)

    def on_all(self, tree: Any) -> Any:  # noqa: ANN401 - any tree of arrays
        """Return the tree of arrays with a copy of each array on the devices of all ranks.

        The values in ``tree`` must be equal on all ranks.
        """
        import jax
        import numpy as np

        return jax.tree.map(
            lambda leaf: jax.make_array_from_process_local_data(self.same, np.asarray(leaf)), tree
        )

    def rows(self, row: "numpy.ndarray") -> "numpy.ndarray":
        """Collect one row from each rank, and return all rows as one array in rank order."""
        import numpy as np

        return np.asarray(self._all(self._with_row(row)))

    def from_first(self, arrays: "Sequence[numpy.ndarray]") -> "list[numpy.ndarray]":
        """Return rank 0's arrays on every rank. The other ranks pass arrays of the same shapes, whose values
        toolkit ignores.
        """
        import jax
        import numpy as np

        first = jax.process_index() == 0
        own = (array if first else np.zeros_like(array) for array in arrays)
        return [np.asarray(self._sum(self._with_row(array))) for array in own]

    def _with_row(self, row: "numpy.ndarray") -> "jax.Array":
        import jax

        return jax.make_array_from_process_local_data(self.split, row[None])


def _numbers(*values: int) -> "numpy.ndarray":
    import numpy as np

    return np.array(values, np.int32)


def _row(text: bytes, size: int) -> "numpy.ndarray":
    """Return the bytes ``text`` as an array with at least ``size`` elements. The array's length is a power of
    two. Zeros follow a ``text`` that is shorter than the array. If ``text`` is longer than the array, the
    array contains only the first bytes of ``text``.
    """
    import numpy as np

    row = np.zeros(max(_LEAST, 1 << (size - 1).bit_length()), np.uint8)
    kept = np.frombuffer(text, np.uint8)[: len(row)]
    row[: len(kept)] = kept
    return row
