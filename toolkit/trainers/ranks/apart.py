"""Detect two ranks that compute on the same GPU, which otherwise only shows as low speed.

The GPUs that a rank sees do not say whether others see the same: Slurm's ``--gpu-bind=closest`` and
environment variables can show one GPU to several ranks. Tested with simulated GPUs only, not on a GPU.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolkit.trainers.checks.node import DEVICES, openable
from toolkit.trainers.frameworks import framework_of
from toolkit.trainers.ranks.world import World
from toolkit.trainers.trouble import Trouble

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ALWAYS_THERE = 2
"""Files that ``nvidia-caps`` always has; any others are parts of GPUs (MIG)."""


def check_apart(world: World) -> None:
    """Compare the GPUs of all ranks, once the ranks can exchange messages.

    Raises:
        Trouble: on all ranks, if two use the same GPU.
    """
    if world.size == 1:
        return
    seen, taken = framework_of(world).gpus(world)
    numbers = numbers_of(os.environ, seen, DEVICES)
    own = [numbers[index] for index in taken] if numbers and taken else []
    if not world.total([len(own)])[0]:
        return
    nodes, masks = [0.0] * world.size, [0.0] * world.size
    # As numbers that a double holds exactly: the node, and a bit for each GPU.
    nodes[world.rank], masks[world.rank] = _node(), sum(1 << number for number in own)
    told = world.total([*nodes, *masks])
    world.agree(shared(world, told[: world.size], [int(mask) for mask in told[world.size :]]))


def shared(world: World, nodes: Sequence[float], masks: Sequence[int]) -> Trouble | None:
    """Return a fault if a lower rank on the same node uses one of the same GPUs."""
    for other in range(world.rank):
        if nodes[other] == nodes[world.rank] and masks[other] & masks[world.rank]:
            return Trouble(
                f"rank {world.rank} on {os.uname().nodename} uses the same GPU as rank {other}, because "
                "Slurm gave both ranks this GPU; give each rank its own GPU with --gpu-bind=single:1, or all "
                "GPUs of the node with --gpu-bind=none"
            )
    return None


def numbers_of(environment: Mapping[str, str], seen: int, devices: Path) -> list[int]:
    """Return the kernel's numbers of the GPUs that CUDA shows; empty if unknown."""
    opens = openable(devices)
    if max(opens, default=0) > 50 or len(list(devices.glob("nvidia-caps/nvidia-cap*"))) > _ALWAYS_THERE:
        # Several ranks may each have a part (MIG) of the same GPU.
        return []
    named = environment.get("CUDA_VISIBLE_DEVICES")
    words = [str(index) for index in range(len(opens))] if named is None else named.split(",")
    known = all(word.isdecimal() and int(word) < len(opens) for word in words)
    return [opens[int(word)] for word in words] if known and len(words) == seen else []


def _node() -> int:
    """Return a number that ranks on the same node share, independent of the host name."""
    try:
        name = _BOOT.read_bytes()
    except OSError:
        name = os.uname().nodename.encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:6], "big")
