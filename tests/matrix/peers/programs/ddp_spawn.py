"""A script as in PyTorch's DDP tutorial, which starts its ranks itself, on one machine."""

import json
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def tell(rank, comm, size=0):
    print(json.dumps({"rank": rank, "size": size, "comm": comm}), flush=True)


def demo(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    tell(rank, "started")
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    tell(rank, "begun", dist.get_world_size())
    total = torch.ones(1)
    dist.all_reduce(total)
    tell(rank, "ok" if total.item() == world_size else "wrong", world_size)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(demo, args=(1,), nprocs=1, join=True)
