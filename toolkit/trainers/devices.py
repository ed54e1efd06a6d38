"""What of the machine a rank computes on.

The part for GPUs has been tested against a stand-in for TensorFlow only, and not on a GPU.
"""

import os
from collections.abc import Mapping

from toolkit.trainers.launcher import cores
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.world import World


def prepare_devices(world: World) -> int:
    """Give this rank its own GPU, if there are any, and its cores; return how many cores.

    TensorFlow takes these settings only before it computes anything, a message of Horovod's included.
    """
    try:
        import tensorflow as tf
    except ImportError as error:
        raise Trouble(f"TensorFlow cannot be loaded: {error}", code=3) from None
    allowed = len(os.sched_getaffinity(0))
    threads = cores(os.environ, world.local_size, allowed=allowed, node=os.cpu_count() or allowed)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        # Where Slurm shows each rank only its own, that is number 0 for all of them.
        tf.config.set_visible_devices(gpus[world.local_rank % len(gpus)], "GPU")
        if len(gpus) < world.local_size and not gpus_are_own(os.environ, len(gpus)):
            have = f"{len(gpus)} GPU{'s' * (len(gpus) > 1)}"
            raise Trouble(
                f"{world.local_size} ranks were started on a node with {have}; "
                "start one a GPU, or hide the GPUs: CUDA_VISIBLE_DEVICES=-1"
            )
    return threads


def gpus_are_own(environment: Mapping[str, str], seen: int) -> bool:
    """Tell whether Slurm shows this rank only a part of the node's GPUs, which no other rank has."""
    if environment.get("SLURM_GPUS_PER_TASK"):
        return True
    given = environment.get("SLURM_GPUS_ON_NODE", "")
    return given.isdecimal() and seen < int(given)
