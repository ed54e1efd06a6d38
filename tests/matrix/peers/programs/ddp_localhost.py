"""A script for torch.distributed with the address localhost, as in scripts for one node."""

import json
import os

import torch
import torch.distributed as dist


def tell(comm, size=0):
    print(json.dumps({"rank": int(os.environ.get("RANK", "-1")), "size": size, "comm": comm}), flush=True)


def main():
    os.environ["MASTER_ADDR"] = "localhost"
    tell("started")
    dist.init_process_group("gloo")
    tell("begun", dist.get_world_size())
    total = torch.ones(1)
    dist.all_reduce(total)
    tell("ok" if total.item() == dist.get_world_size() else "wrong", dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
