"""PyTorch strategy ``fsdp``: each rank stores a part of the model (FSDP2), and the ranks exchange values over
NCCL or Gloo.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolkit.trainers.strategies.ddp import DistributedTorch

if TYPE_CHECKING:
    import numpy
    import torch

_LEAST = 10_000
"""If a layer has at least this number of parameters, ranks exchange the layer on its own. Ranks exchange all
smaller layers together.
"""


class ShardedTorch(DistributedTorch):
    """Ranks that each store a part of the parameters, the gradients and the optimizer's state.

    A rank has all parameters of a layer only while the layer computes, or between several passes of one
    training step (see :meth:`exchanging`). Source: PyTorch's documentation,
    ``torch.distributed.fsdp.fully_shard``.
    """

    strategy = "fsdp"

    def wrapped(self, model: "torch.nn.Module") -> "torch.nn.Module":
        """Return the model after dividing its parameters among the ranks."""
        if self.size == 1:
            return model
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        # Copy the weights of rank 0 to all ranks, because fully_shard() does not make the weights equal.
        self.spread(list(model.state_dict().values()))
        mesh = init_device_mesh(self.device.type, (self.size,))
        for layer in large_layers(model):
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        return fully_shard(model, mesh=mesh, reshard_after_forward=True)

    @contextlib.contextmanager
    def exchanging(self, model: "torch.nn.Module", *, exchange: bool) -> Iterator[None]:
        """If ``exchange`` is true, the ranks exchange gradients in this backward pass. If ``exchange`` is
        false, each rank keeps its gradients and the full parameters for the next pass.

        Ranks may split their batches into different numbers of pieces, with one backward pass for each piece.
        All ranks still send the same messages in a training step.
        """
        if self.size > 1:
            model.set_requires_gradient_sync(exchange)
            model.set_reshard_after_forward(exchange)
            model.set_reshard_after_backward(exchange)
        yield

    def whole(self, tensor: "torch.Tensor") -> "torch.Tensor":
        """Return the complete tensor from the parts of all ranks. All ranks must call this method."""
        from torch.distributed.tensor import DTensor

        return tensor.detach().full_tensor() if isinstance(tensor, DTensor) else tensor.detach()

    def load(self, tensors: "Sequence[torch.Tensor]", arrays: "Sequence[numpy.ndarray] | None") -> None:
        """Copy rank 0's complete arrays into the tensors of all ranks. Each rank keeps only its part of a
        tensor.
        """
        import torch
        from torch.distributed.tensor import DTensor, distribute_tensor

        for number, tensor in enumerate(tensors):
            value = torch.zeros(tensor.shape, dtype=tensor.dtype, device=self.device)
            if arrays is not None:
                value.copy_(torch.as_tensor(arrays[number]))
            self.spread([value])
            if isinstance(tensor, DTensor):
                part = distribute_tensor(value, tensor.device_mesh, tensor.placements, src_data_rank=None)
                tensor.to_local().data.copy_(part.to_local())
            else:
                tensor.data.copy_(value)


def large_layers(model: "torch.nn.Module") -> "Iterator[torch.nn.Module]":
    """Yield the layers that have at least ``_LEAST`` parameters, including layers inside containers such as
    ``Sequential``.
    """
    from torch import nn

    for layer in model.children():
        if isinstance(layer, nn.Sequential | nn.ModuleList | nn.ModuleDict):
            yield from large_layers(layer)
        elif sum(one.numel() for one in layer.parameters()) >= _LEAST:
            yield layer
