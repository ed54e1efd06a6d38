"""One training step with DistributedDataParallel, as PyTorch's documentation shows it."""

import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def tell(comm, size=0):
    print(json.dumps({"rank": int(os.environ.get("RANK", "-1")), "size": size, "comm": comm}), flush=True)


tell("started")
dist.init_process_group("gloo")
tell("begun", dist.get_world_size())
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(4, 1))
model(torch.full((2, 4), dist.get_rank() + 1.0)).sum().backward()
# The mean of 2 * (rank + 1) over all ranks is size + 1, equal on all ranks.
mean = dist.get_world_size() + 1
tell("ok" if model.module.weight.grad[0, 0].item() == mean else "wrong", dist.get_world_size())
dist.destroy_process_group()
os._exit(0)  # PyTorch 2.13 with Gloo may abort if it exits within 5 ms of a backward pass
