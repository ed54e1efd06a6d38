"""A JAX script that passes address, size and rank from the job script's variables to JAX."""

import json
import os

import jax

SLURM = int(os.environ.get("SLURM_PROCID", "-1"))


def tell(comm, size=0, rank=SLURM):
    print(json.dumps({"rank": rank, "size": size, "comm": comm}), flush=True)


jax.config.update("jax_cpu_collectives_implementation", "gloo")
tell("started")
jax.distributed.initialize(
    coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
    process_id=int(os.environ["JAX_PROCESS_ID"]),
)
tell("begun", jax.process_count(), jax.process_index())
from jax.experimental import multihost_utils  # noqa: E402

total = multihost_utils.process_allgather(jax.numpy.ones(1)).sum()
tell("ok" if total == jax.process_count() else "wrong", jax.process_count(), jax.process_index())
