"""What of the machine a rank computes on.

The part for GPUs has been tested against a stand-in for TensorFlow only, and not on a GPU.
"""

import os
from collections.abc import Mapping

from toolkit.trainers.ranks.launcher import cores
from toolkit.trainers.ranks.world import World
from toolkit.trainers.trouble import Trouble


def prepare_devices(world: World) -> int:
    """Give this rank its GPUs, if there are any, and its cores; return how many cores.

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
        own = gpus_are_own(os.environ, len(gpus))
        tf.config.set_visible_devices([gpus[number] for number in chosen(world, len(gpus), own=own)], "GPU")
    elif world.wanted > 1:
        (cpu,) = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration()] * world.wanted
        tf.config.set_logical_device_configuration(cpu, parts)
    return threads


def chosen(world: World, seen: int, *, own: bool) -> list[int]:
    """Return which of the GPUs that it sees a rank takes; all are its ``own``, or the node's ranks share.

    Raises:
        Trouble: if there are fewer than it is to have.
    """
    if own or world.local_size == 1:
        # Where Slurm shows each rank only its own, that is number 0 for all of them.
        first, have = 0, seen
    else:
        have = seen // world.local_size
        first = world.local_rank * have
    wanted = world.wanted or max(1, have)
    if wanted > have:
        there = f"{seen} GPU{'s' * (seen > 1)}"
        if world.wanted > 1:
            raise Trouble(
                f"--devices {wanted} is more than there are: {there} for {world.local_size} "
                f"rank{'s' * (world.local_size > 1)} on this node"
            )
        raise Trouble(
            f"{world.local_size} ranks were started on a node with {there}; "
            "start one a GPU, or hide the GPUs: CUDA_VISIBLE_DEVICES=-1"
        )
    return list(range(first, first + wanted))


def gpus_are_own(environment: Mapping[str, str], seen: int) -> bool:
    """Tell whether Slurm shows this rank only a part of the node's GPUs, which no other rank has."""
    if environment.get("SLURM_GPUS_PER_TASK"):
        return True
    given = environment.get("SLURM_GPUS_ON_NODE", "")
    return given.isdecimal() and seen < int(given)
