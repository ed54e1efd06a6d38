"""Plan which gradients are sent together and which are used late; all ranks compute the same plan."""

from collections.abc import Iterable, Sequence

BUCKET = 1 << 20
"""Values in a bucket, 4 MB of float32: large enough for the network's full speed, and small enough that the
first bucket is sent while most of the backward pass still runs.
"""


def buckets(sizes: Sequence[int], kinds: Sequence[str], limit: int = BUCKET) -> list[list[int]]:
    """Return the numbers of the tensors in each bucket, in the order in which buckets are sent.

    ``sizes`` are the values of each tensor and ``kinds`` their types, which are not mixed. The backward pass
    starts at the last layer, so buckets are filled from the end. A tensor larger than a bucket has its own
    bucket.

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
    """Return whether a step, counted from 0, uses the gradients of the step before.

    The first ``ksteps`` steps do not; if it is negative, the last steps of ``max_steps`` do not.

    >>> [is_delayed(step, 2, 4) for step in range(4)], [is_delayed(step, -1, 4) for step in range(4)]
    ([False, False, True, True], [True, True, True, False])
    """
    if ksteps < 0:
        return step < max_steps + ksteps
    return step >= ksteps


def split(sizes: Iterable[int]) -> list[tuple[int, int]]:
    """Return the start and end of each tensor in its bucket."""
    places, at = [], 0
    for size in sizes:
        places.append((at, at + size))
        at += size
    return places
