"""Deal the samples of each epoch out to the ranks: each seen once in a pass, none missed."""

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy


def deal(
    *,
    count: int,
    batch: int,
    rank: int,
    size: int,
    devices: int,
    epoch: int,
    seed: int,
    passes: int | None = None,
    done: int = 0,
) -> "list[numpy.ndarray]":
    """Return the samples of a rank with so many ``devices``, side by side in a row; see :func:`share`.

    Each device counts as a rank there. In the last, odd step the first devices may have one sample more.
    """
    import numpy as np

    tables = [
        share(
            count=count,
            batch=batch,
            rank=rank * devices + device,
            size=size * devices,
            epoch=epoch,
            seed=seed,
            passes=passes,
            done=done,
        )
        for device in range(devices)
    ]
    if devices == 1:
        return tables[0]
    return [np.hstack(together) for together in zip(*tables, strict=True)]


def share(
    *,
    count: int,
    batch: int,
    rank: int,
    size: int,
    epoch: int,
    seed: int,
    passes: int | None = None,
    done: int = 0,
) -> "list[numpy.ndarray]":
    """Return the samples of one rank in one epoch: a table with a row a step, and one of the last, odd step.

    In an epoch the ranks together make ``passes`` passes over the data, one after the other; as many as
    there are ranks unless it is said. A pass is a shuffle of all samples that depends on ``seed`` and its
    number only, so the ranks agree on it without talking. The passes form one stream, from which each step
    takes ``batch`` samples a rank: the same batches that one process with a batch of ``size * batch`` would
    take. What fills no step is shared out as one smaller step, in which all ranks have as many samples if
    there are as many passes as ranks.

    ``done`` samples of the stream have been taken before, perhaps by another number of ranks. Where fewer
    are left than would give one to each rank, the step before takes them in; if there is no such step,
    several ranks train on the same sample.
    """
    import numpy as np

    passes = passes or size
    steps, rest = divmod(passes * count - done, batch * size)
    if steps and 0 < rest < size:
        steps, rest = steps - 1, rest + batch * size
    whole = done + np.arange(steps)[:, np.newaxis] * (batch * size) + rank * batch + np.arange(batch)
    first = done + steps * batch * size
    if 0 < rest < size:
        tail = np.array([first + rank % rest])
    else:
        each, more = divmod(rest, size)
        tail = first + rank * each + min(rank, more) + np.arange(each + (rank < more))
    positions = np.concatenate([whole.ravel(), tail])
    mine = np.empty(len(positions), dtype=np.int32)
    edges = np.searchsorted(positions, np.arange(passes + 1) * count)
    for number, (start, stop) in enumerate(pairwise(edges)):
        if start < stop:
            shuffle = np.random.default_rng((seed, epoch * passes + number)).permutation(count)
            mine[start:stop] = shuffle[positions[start:stop] - number * count]
    tables = [mine[: whole.size].reshape(-1, batch), mine[whole.size :].reshape(1, -1)]
    return [table for table in tables if table.size]
