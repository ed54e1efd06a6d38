"""PyTorch strategy ``ddp``: DistributedDataParallel averages the gradients of all ranks over NCCL or Gloo."""

import contextlib
import os
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn, TypeVar

from toolkit.trainers.ranks.devices import choose_gpus, gpus_are_own
from toolkit.trainers.ranks.launcher import first_number, started_size
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.ranks.world import World, complain_once
from toolkit.trainers.start_marks import mark
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy
    import torch

T = TypeVar("T")

_JOIN = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
_JOIN_SECONDS = 300
"""The number of seconds for which a rank waits until all ranks have joined."""


class DistributedTorch(World):
    """Ranks that connect through ``torch.distributed``. A job script or torchrun sets the environment
    variables for the connection.
    """

    strategy = "ddp"

    def __init__(self, _: RankSpread = PLAIN) -> None:
        try:
            import torch
            from torch import distributed
        except ImportError as error:
            raise Trouble(f"PyTorch cannot be loaded: {error}", code=3) from None
        self._distributed = distributed
        self.rank, self.size = (
            first_number(os.environ, ("RANK",), 0),
            first_number(os.environ, ("WORLD_SIZE",), 1),
        )
        self.local_rank, self.local_size = (
            first_number(os.environ, ("LOCAL_RANK",), 0),
            first_number(os.environ, ("LOCAL_WORLD_SIZE",), 1),
        )
        self.nodes = -(-self.size // self.local_size)
        self.versions = {}
        if self.size < started_size(os.environ):
            complain_once(
                f"{started_size(os.environ)} processes were started, but WORLD_SIZE is {self.size}; start "
                "the processes in the launch mode torch, or with torchrun"
            )
        gpus = torch.cuda.device_count()
        self.device = self._device(gpus)
        backend = "nccl" if gpus else "gloo"
        if self.size > 1:
            missing = [name for name in _JOIN if not os.environ.get(name)]
            if missing:
                words = f"{', '.join(missing)} not set; use the launch mode torch"
                complain_once(f"--strategy {self.strategy}: {words}")
            if gpus:
                torch.cuda.set_device(self.device)
            mark("imports")
            distributed.init_process_group(backend, timeout=timedelta(seconds=_JOIN_SECONDS))
            self.versions = {"backend": backend}

    def _device(self, gpus: int) -> "torch.device":
        import torch

        if not gpus:
            return torch.device("cpu")
        own = gpus_are_own(os.environ, self, gpus, gpus)
        return torch.device("cuda", choose_gpus(self, gpus, exclusive=own)[0])

    def wrapped(self, model: "torch.nn.Module") -> "torch.nn.Module":
        """Return a model whose backward pass averages the gradients of all ranks."""
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(model) if self.size > 1 else model

    def exchanging(
        self, model: "torch.nn.Module", *, exchange: bool
    ) -> "contextlib.AbstractContextManager[object]":
        """Return a context manager for a backward pass.

        If ``exchange`` is true, the ranks exchange gradients in this backward pass. Otherwise, each rank adds
        its gradients to its gradients of earlier passes, without messages.
        """
        kept: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        return kept if exchange or self.size == 1 else model.no_sync()

    def spread(self, tensors: "Sequence[torch.Tensor]") -> None:
        """Copy the values of rank 0's tensors to all ranks."""
        if self.size == 1:
            return
        for tensor in tensors:
            # NCCL sends only GPU memory, but some tensors, such as step counters, are in host memory.
            there = tensor.data.to(self.device)
            self._distributed.broadcast(there, 0)
            tensor.data.copy_(there)

    def whole(self, tensor: "torch.Tensor") -> "torch.Tensor":
        """Return the complete tensor. With strategy ``ddp``, each rank already has the complete tensor. All
        ranks must call this method, because the subclass for ``fsdp`` collects the tensor from all ranks.
        """
        return tensor.detach()

    def load(self, tensors: "Sequence[torch.Tensor]", arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Copy the arrays of rank 0 into the tensors of all ranks. All other ranks may pass ``None``
        as ``arrays``.
        """
        import torch

        for tensor, array in zip(tensors, arrays or (), strict=arrays is not None):
            tensor.data.copy_(torch.as_tensor(array))
        self.spread(tensors)

    def total(self, values: Sequence[float]) -> list[float]:
        import torch

        # Use float64, because float32 is not exact for large numbers of samples.
        sums = torch.tensor(list(values), dtype=torch.float64, device=self.device)
        if self.size > 1:
            self._distributed.all_reduce(sums)
        return [float(value) for value in sums]

    def tell(self, value: T) -> T:
        if self.size == 1:
            return value
        told: list[T] = [value]
        self._distributed.broadcast_object_list(told, 0, device=self.device)
        return told[0]

    def gather(self, value: T) -> list[T]:
        values = [value] * self.size
        if self.size > 1:
            self._distributed.all_gather_object(values, value)
        return values

    def leave(self, code: int) -> NoReturn:
        # Wait until all ranks have called leave(), because srun stops all ranks when the first rank fails.
        # Rank 0 exits last, because the other ranks still use its TCP store.
        if self.size > 1:
            self.total([0.0])
            if self.rank == 0:
                time.sleep(0.2)
        os._exit(code)
