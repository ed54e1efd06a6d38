"""Check the world of a program without MPI. Every rank runs this inside the image before the program:

    python toolkit-peers.py torch|jax|tf-config [--gpus N] --tasks N

The ranks join as the program does, count each other, and add up a number. Exit status 1 means that they do
not form one world. If the image lacks the framework, the script checks nothing, because the program may
include the framework itself.
"""

import os
import sys
import time

SECONDS = 120
MEGABYTES = 16


def by_torch(gpus):
    import datetime

    import torch
    import torch.distributed as dist

    if gpus and torch.cuda.device_count() == 0:
        raise RuntimeError("PyTorch %s sees no GPU" % torch.__version__)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=SECONDS))
    total, many = torch.ones(1), torch.ones(MEGABYTES << 18)
    dist.all_reduce(total)
    begun = time.time()
    dist.all_reduce(many)
    took = time.time() - begun
    size, rank = dist.get_world_size(), dist.get_rank()
    dist.destroy_process_group()
    speed = "%d MB added up in %.2f s by Gloo" % (MEGABYTES, took)
    return rank, size, int(total.item()), "PyTorch %s, %s" % (torch.__version__, speed)


def by_jax(gpus):
    import jax

    if gpus and jax.default_backend() == "cpu":
        raise RuntimeError("JAX %s sees no GPU" % jax.__version__)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
        initialization_timeout=SECONDS,
    )
    from jax.experimental import multihost_utils

    total = multihost_utils.process_allgather(jax.numpy.ones(1)).sum()
    return jax.process_index(), jax.process_count(), int(total), "JAX %s" % jax.__version__


def by_tensorflow(gpus):
    import tensorflow as tf

    if gpus and not tf.config.list_physical_devices("GPU"):
        raise RuntimeError("TensorFlow %s sees no GPU" % tf.__version__)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    size = resolver.cluster_spec().num_tasks("worker") if resolver.cluster_spec() else 1
    # AutoGraph does not find the source code of a lambda, and warns.
    one = tf.function(lambda: strategy.run(lambda: tf.constant(1.0)), autograph=False)
    total = strategy.reduce(tf.distribute.ReduceOp.SUM, one(), axis=None)
    each = max(strategy.num_replicas_in_sync // size, 1)
    return resolver.task_id or 0, size, int(total) // each, "TensorFlow %s" % tf.__version__


def main(words):
    program, tasks = words[0], int(words[words.index("--tasks") + 1])
    gpus = int(words[words.index("--gpus") + 1]) if "--gpus" in words else 0
    check = {"torch": by_torch, "jax": by_jax, "tf-config": by_tensorflow}[program]
    try:
        rank, size, total, name = check(gpus)
    except ImportError as error:
        print("preflight: the world of the program is not checked: %s" % error, file=sys.stderr)
        return 0
    except Exception as error:  # each framework has its own exceptions
        print("preflight: %s: %s" % (type(error).__name__, str(error).split("\n")[0]), file=sys.stderr)
        return 1
    if size == tasks and total == tasks:
        if rank == 0:
            print("preflight: %d ranks, %s." % (size, name), file=sys.stderr)
        return 0
    alone = "every rank is alone" if size == 1 else "some ranks are missing or were started twice"
    if rank == 0:
        line = "preflight: a world of %d where %d ranks were started: %s (%s)."
        print(line % (size, tasks, alone, name), file=sys.stderr)
    return 1


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    # At its exit, JAX waits for the other ranks. os._exit skips this wait if a rank found a fault.
    os._exit(status) if status else sys.exit(0)
