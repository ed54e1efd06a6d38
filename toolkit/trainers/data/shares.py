"""Assign the samples of each epoch to the ranks. In each pass over the data, the ranks together use each
sample exactly once.
"""

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
    used_samples: int = 0,
) -> "list[numpy.ndarray]":
    """Return the tables of sample numbers for a rank with ``devices`` devices. Each row of a table has the
    sample numbers of all devices of this rank for one training step.

    The function calls :func:`share` once per device as if each device were a rank, and joins the resulting
    tables. For the other arguments, see :func:`share`. In the last step of an epoch, the first devices may
    have one sample more than the other devices.
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
            used_samples=used_samples,
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
    used_samples: int = 0,
) -> "list[numpy.ndarray]":
    """Return tables with the sample numbers of one epoch for one rank. Each row has the sample numbers of one
    training step. ``rank`` is the number of this rank, and ``size`` is the number of all ranks.

    If the epoch's last step has fewer or more samples than the other steps, a second table contains only the
    last step. In an epoch, the ranks together make ``passes`` passes over the data (default: as many passes
    as ranks). For each pass, toolkit shuffles all ``count`` samples of the data set. The shuffled order
    depends only on ``seed`` and the number of the pass. All ranks compute the same shuffled order, so they
    need no messages. The shuffled passes form one long sequence of samples, from which each step takes
    ``batch`` samples per rank. A training in one process with a batch of ``size * batch`` samples would use
    the same batches. Samples at the end of the epoch that do not fill a step form one smaller last step. If
    an epoch has as many passes as ranks, all ranks have equally many samples in the last step.

    The function skips the first ``used_samples`` samples of the epoch, because an earlier run has already
    trained on these samples, possibly with a different number of ranks. If fewer samples than ranks remain
    after the last full step, toolkit merges the remaining samples with this step. If the epoch has no full
    step and fewer samples than ranks, several ranks train on the same sample.
    """
    import numpy as np

    passes = passes or size
    steps, rest = divmod(passes * count - used_samples, batch * size)
    if steps and 0 < rest < size:
        steps, rest = steps - 1, rest + batch * size
    whole = used_samples + np.arange(steps)[:, np.newaxis] * (batch * size) + rank * batch + np.arange(batch)
    first = used_samples + steps * batch * size
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
