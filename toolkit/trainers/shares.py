"""Deal the samples of each epoch out to the ranks: each seen once in a pass, none missed."""

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy


def share(*, count: int, batch: int, rank: int, size: int, epoch: int, seed: int) -> "numpy.ndarray":
    """Return the samples of one rank in one epoch, in order; every rank gets ``count`` of them.

    In an epoch the ranks together make ``size`` passes over the data, one after the other. A pass is a
    shuffle of all samples that depends on ``seed`` and its number only, so the ranks agree on it without
    talking. The passes form one stream, from which each step takes ``batch`` samples a rank: the same
    batches that one process with a batch of ``size * batch`` would take. As the stream is ``size`` times
    ``count`` long, all ranks make the same number of steps, of the same sizes, and nothing is left over.
    """
    import numpy as np

    steps, rest = divmod(count, batch)
    whole = np.arange(steps)[:, np.newaxis] * (batch * size) + rank * batch + np.arange(batch)
    tail = steps * batch * size + rank * rest + np.arange(rest)
    positions = np.concatenate([whole.ravel(), tail])
    mine = np.empty(count, dtype=np.int32)
    edges = np.searchsorted(positions, np.arange(size + 1) * count)
    for number, (start, stop) in enumerate(pairwise(edges)):
        shuffle = np.random.default_rng((seed, epoch * size + number)).permutation(count)
        mine[start:stop] = shuffle[positions[start:stop] - number * count]
    return mine
