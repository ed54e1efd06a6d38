"""Detect ranks that compute on the same GPU. Without this check, the only symptom of a shared GPU is low
speed.

Slurm's ``--gpu-bind=closest`` or ``CUDA_VISIBLE_DEVICES`` can make one GPU visible to several ranks. A rank
cannot detect this fault alone, so the ranks compare the numbers of their GPUs: ``/dev/nvidiaN`` is the GPU
with number N.
toolkit's developers tested this code only with simulated GPUs, not on a GPU.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolkit.trainers.checks.node import DEVICES, openable
from toolkit.trainers.frameworks import framework_of
from toolkit.trainers.ranks.world import World
from toolkit.trainers.trouble import Trouble

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ALWAYS_THERE = 2
"""The number of files in ``/dev/nvidia-caps`` on a node without MIG. Each MIG instance adds files.
"""


def check_own_gpus(world: World) -> None:
    """Check that no two ranks use the same GPU. Call this function on all ranks after the ranks have
    connected, because the ranks exchange the numbers of their GPUs.

    Raises:
        Trouble: if this rank uses the same GPU as a rank with a lower number. All other ranks then exit, too.
    """
    if world.size == 1:
        return
    seen, taken = framework_of(world).gpus(world)
    numbers = gpu_numbers(os.environ, seen, DEVICES)
    own = [numbers[index] for index in taken] if numbers and taken else []
    found = world.gather((_node_id(), tuple(own)))
    if any(gpus for _, gpus in found):
        world.agree(find_shared_gpu(world.rank, found))


def find_shared_gpu(rank: int, rank_gpus: Sequence[tuple[str, tuple[int, ...]]]) -> Trouble | None:
    """Return an error if ``rank`` uses the same GPU as a rank with a lower number on the same node.
    Otherwise, return ``None``.

    Args:
        rank: the rank to check.
        rank_gpus: for each rank, an ID of its node, and the numbers N of the rank's GPUs ``/dev/nvidiaN``.
    """
    node, own = rank_gpus[rank]
    for other, (place, gpus) in enumerate(rank_gpus[:rank]):
        if place == node and not set(gpus).isdisjoint(own):
            return Trouble(
                f"rank {rank} on {os.uname().nodename} uses the same GPU as rank {other}; "
                "give each rank its own GPU with --gpu-bind=single:1, or make all GPUs of the node visible "
                "to each rank with --gpu-bind=none, so that each rank chooses a different GPU"
            )
    return None


def gpu_numbers(environment: Mapping[str, str], visible_count: int, devices: Path) -> list[int]:
    """Return the kernel's numbers N of the GPUs ``/dev/nvidiaN`` that CUDA shows to this rank. The list is
    empty if the numbers are unknown.

    ``visible_count`` is the number of GPUs that the framework sees. ``devices`` is the folder of the device
    files.
    """
    opens = openable(devices)
    if max(opens, default=0) > 50 or len(list(devices.glob("nvidia-caps/nvidia-cap*"))) > _ALWAYS_THERE:
        # With MIG, several ranks may correctly use different parts of the same GPU, so do not compare GPUs.
        return []
    named = environment.get("CUDA_VISIBLE_DEVICES")
    words = [str(index) for index in range(len(opens))] if named is None else named.split(",")
    known = all(word.isdecimal() and int(word) < len(opens) for word in words)
    return [opens[int(word)] for word in words] if known and len(words) == visible_count else []


def _node_id() -> str:
    """Return the kernel's boot ID, which is the same for all ranks on a node. If the boot ID is unreadable,
    return the host name.
    """
    try:
        return _BOOT.read_text()
    except OSError:
        return os.uname().nodename
