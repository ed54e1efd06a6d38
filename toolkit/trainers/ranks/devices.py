"""Select the GPUs on which a rank computes, and count the CPU cores that the rank may use.

toolkit's developers tested the GPU code only with a simulated TensorFlow, not on a GPU.
"""

import os
from collections.abc import Mapping

from toolkit.trainers.checks.node import DEVICES, openable
from toolkit.trainers.ranks.launcher import cores
from toolkit.trainers.ranks.world import World
from toolkit.trainers.trouble import Trouble


def prepare_devices(world: World) -> int:
    """Let TensorFlow use this rank's GPUs, if any, and a thread for each CPU core that this rank may use.
    Return the number of these CPU cores.

    TensorFlow accepts settings for devices and threads only before its first computation. Horovod's messages
    are TensorFlow computations, so call this function before Horovod sends its first message.
    """
    try:
        import tensorflow as tf
    except ImportError as error:
        raise Trouble(f"TensorFlow cannot be loaded: {error}", code=3) from None
    threads = own_cores(world)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        own = gpus_are_own(os.environ, world, len(gpus), len(openable(DEVICES)))
        taken = choose_gpus(world, len(gpus), exclusive=own, node=_of_slurm(os.environ))
        tf.config.set_visible_devices([gpus[number] for number in taken], "GPU")
    elif world.requested_devices > 1:
        (cpu,) = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration()] * world.requested_devices
        tf.config.set_logical_device_configuration(cpu, parts)
    return threads


def own_cores(world: World) -> int:
    """Return the number of CPU cores that this rank may use."""
    allowed = len(os.sched_getaffinity(0))
    return cores(os.environ, world.local_size, allowed_cores=allowed, node_cores=os.cpu_count() or allowed)


def visible_gpus(environment: Mapping[str, str], openable_count: int) -> int:
    """Return the number of GPUs that CUDA shows to this rank. ``openable_count`` is the number of GPUs whose
    device files the rank can open.
    """
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is None or not openable_count:
        return openable_count
    return len([one for one in named.split(",") if one.strip() not in ("", "-1")])


def choose_gpus(world: World, visible_count: int, *, exclusive: bool, node: int = 0) -> list[int]:
    """Return the indices of the GPUs that a rank uses, in CUDA's order.

    ``visible_count`` is the number of GPUs that CUDA shows to the rank. ``exclusive`` is true if no other
    rank sees these GPUs. ``node`` is the number of GPUs that Slurm allocated to the job on this node, or 0 if
    unknown.

    Raises:
        Trouble: if there are fewer GPUs than the rank needs.
    """
    if exclusive or world.local_size == 1:
        # If each rank sees only its own GPUs, CUDA numbers these GPUs from 0 on every rank.
        first, have = 0, visible_count
    else:
        have = visible_count // world.local_size
        first = world.local_rank * have
    wanted = world.requested_devices or max(1, have)
    if wanted > have:
        there = f"{visible_count} GPU{'s' * (visible_count > 1)}"
        if world.local_size > 1 and visible_count < node and wanted <= node // world.local_size:
            raise Trouble(
                f"the {world.local_size} ranks on this node all use the same {there}, although the job has "
                f"{node} GPUs on this node; give each rank its own: "
                f"--gpu-bind=single:1{f', with --gpus-per-task={wanted}' * (wanted > 1)}"
            )
        if world.requested_devices > 1:
            raise Trouble(
                f"--devices {wanted}: this node has only {there} for {world.local_size} "
                f"rank{'s' * (world.local_size > 1)}"
            )
        there = f"{max(visible_count, node)} GPU{'s' * (max(visible_count, node) > 1)}"
        raise Trouble(
            f"{world.local_size} ranks were started on a node with {there}; start one rank for each GPU, "
            "or hide the GPUs: CUDA_VISIBLE_DEVICES=-1"
        )
    return list(range(first, first + wanted))


def gpus_are_own(
    environment: Mapping[str, str], world: World, visible_count: int, openable_count: int
) -> bool:
    """Return whether the caller may assume that no other rank sees the GPUs that this rank sees.

    ``visible_count`` is the number of GPUs that this rank sees. ``openable_count`` is the number of the
    node's GPUs that the rank can open, or 0 if unknown. If the function returns False, the caller divides the
    visible GPUs among the ranks of a node, so that two ranks never use the same GPU. In a doubtful case, the
    function returns False. The function returns True in two cases. In the first case, the visible
    GPUs are too few for all ranks on the node, so each rank probably sees only its own GPUs. In the second
    case, this rank wants all GPUs that it sees, and Slurm or the kernel lets it see only its own GPUs.
    """
    each, node = _of_task(environment), _of_slurm(environment)
    if visible_count * world.local_size > (node or each * world.local_size):
        # The job has fewer GPUs on this node than its ranks see in total, so several ranks see the same GPUs.
        # With --gpu-bind=none, this can happen even if Slurm sets SLURM_GPUS_PER_TASK.
        return False
    if visible_count < world.local_size * max(1, world.requested_devices):
        return True
    # If this rank wants all GPUs that it sees, no other rank sees these GPUs in two cases: Slurm allocated
    # as many GPUs to each task as this rank sees, or the kernel blocks the node's other GPUs.
    # CUDA_VISIBLE_DEVICES alone proves nothing, because all ranks may have the same value.
    return world.requested_devices == 0 and (visible_count == each or visible_count == openable_count < node)


def _of_slurm(environment: Mapping[str, str]) -> int:
    """Return the number of this node's GPUs that Slurm allocated to the job, or 0 if unknown."""
    given = environment.get("SLURM_GPUS_ON_NODE", "")
    return int(given) if given.isdecimal() else 0


def _of_task(environment: Mapping[str, str]) -> int:
    """Return the number of GPUs that Slurm allocated to each task, or 0 if unknown. Slurm writes this number
    as ``2`` or ``a100:2``.
    """
    given = environment.get("SLURM_GPUS_PER_TASK", "").rpartition(":")[2]
    return int(given) if given.isdecimal() else 0
