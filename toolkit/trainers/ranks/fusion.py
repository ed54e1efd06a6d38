"""Assign gradients to messages, and decide which training steps use gradients of the previous step. The
results depend only on the arguments, so that all ranks compute the same results.
"""

from collections.abc import Iterable, Sequence

BUCKET = 1 << 20
"""The number of values in a bucket, the group of gradients that a rank sends as one message: 4 MB of float32.
Messages of 4 MB reach the network's full speed, and ranks can send the first bucket early in the backward
pass.
"""


def buckets(sizes: Sequence[int], kinds: Sequence[str], limit: int = BUCKET) -> list[list[int]]:
    """Return the indices of the tensors in each bucket. Ranks send the buckets in the returned order.

    ``sizes`` has the number of values of each tensor. ``kinds`` has the types of the tensors; all tensors of
    a bucket have the same type. The backward pass starts at the last layer, so the last tensors fill the
    first bucket. If a tensor is larger than ``limit``, it forms a separate bucket.

    >>> buckets([5, 1, 1, 3], ["float32"] * 4, limit=4)
    [[3, 2], [1], [0]]
    """
    plan: list[list[int]] = []
    room, kind = 0, ""
    for number in reversed(range(len(sizes))):
        if not plan or sizes[number] > room or kinds[number] != kind:
            plan.append([])
            room, kind = limit, kinds[number]
        plan[-1].append(number)
        room -= sizes[number]
    return plan


def is_delayed(step: int, ksteps: int, max_steps: int) -> bool:
    """Return whether a step, counted from 0, uses the gradients of the previous step.

    The first ``ksteps`` steps are synchronous: each of these steps uses its own gradients. If ``ksteps`` is
    negative, the last ``-ksteps`` of ``max_steps`` steps are synchronous instead.

    >>> [is_delayed(step, 2, 4) for step in range(4)], [is_delayed(step, -1, 4) for step in range(4)]
    ([False, False, True, True], [True, True, True, False])
    """
    if ksteps < 0:
        return step < max_steps + ksteps
    return step >= ksteps


def split(sizes: Iterable[int]) -> list[tuple[int, int]]:
    """Return the index of the first value of each tensor in a bucket, and the index after the last value.
    ``sizes`` contains the number of values of each tensor.
    """
    places, at = [], 0
    for size in sizes:
        places.append((at, at + size))
        at += size
    return places
