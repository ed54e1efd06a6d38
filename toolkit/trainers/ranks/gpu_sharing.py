"""Detect two ranks that compute on the same GPU, which otherwise only shows as low speed.

The GPUs that a rank sees do not say whether others see the same: Slurm's ``--gpu-bind=closest`` and
environment variables can show one GPU to several ranks. Tested with simulated GPUs only, not on a GPU.
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
"""Files that ``nvidia-caps`` always has; any other files are parts of GPUs (MIG)."""


def check_own_gpus(world: World) -> None:
    """Compare the GPUs of all ranks, once the ranks can exchange messages.

    Raises:
        Trouble: on all ranks, if two use the same GPU.
    """
    if world.size == 1:
        return
    seen, taken = framework_of(world).gpus(world)
    numbers = gpu_numbers(os.environ, seen, DEVICES)
    own = [numbers[index] for index in taken] if numbers and taken else []
    found = world.gather((_node_id(), tuple(own)))
    if any(gpus for _, gpus in found):
        world.agree(find_shared_gpu(world.rank, found))


def find_shared_gpu(rank: int, found: Sequence[tuple[str, tuple[int, ...]]]) -> Trouble | None:
    """Return a fault if a lower rank on the node of ``rank`` uses one of the GPUs of ``rank``.

    Args:
        rank: the rank that reports the fault.
        found: the node of each rank, and the kernel's numbers of its GPUs.
    """
    node, own = found[rank]
    for other, (place, gpus) in enumerate(found[:rank]):
        if place == node and not set(gpus).isdisjoint(own):
            return Trouble(
                f"rank {rank} on {os.uname().nodename} uses the same GPU as rank {other}, because "
                "Slurm gave both ranks this GPU; give each rank its own GPU with --gpu-bind=single:1, or all "
                "GPUs of the node with --gpu-bind=none"
            )
    return None


def gpu_numbers(environment: Mapping[str, str], seen: int, devices: Path) -> list[int]:
    """Return the kernel's numbers of the GPUs that CUDA shows; empty if unknown."""
    opens = openable(devices)
    if max(opens, default=0) > 50 or len(list(devices.glob("nvidia-caps/nvidia-cap*"))) > _ALWAYS_THERE:
        # Several ranks may each have a part (MIG) of the same GPU.
        return []
    named = environment.get("CUDA_VISIBLE_DEVICES")
    words = [str(index) for index in range(len(opens))] if named is None else named.split(",")
    known = all(word.isdecimal() and int(word) < len(opens) for word in words)
    return [opens[int(word)] for word in words] if known and len(words) == seen else []


def _node_id() -> str:
    """Return a text that ranks on the same node share, independent of the host name."""
    try:
        return _BOOT.read_text()
    except OSError:
        return os.uname().nodename
