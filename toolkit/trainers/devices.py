"""What of the machine a rank computes on."""

import os

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
    threads = cores(os.environ, world.local_size)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        # Where Slurm shows each rank only its own, that is number 0 for all of them.
        tf.config.set_visible_devices(gpus[world.local_rank % len(gpus)], "GPU")
    return threads
