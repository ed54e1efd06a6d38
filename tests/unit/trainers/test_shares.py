from collections import Counter

import numpy as np
import pytest

from toolkit.trainers.shares import share


def shares(count, batch, size, epoch=0, seed=1):
    return [
        share(count=count, batch=batch, rank=rank, size=size, epoch=epoch, seed=seed) for rank in range(size)
    ]


def steps(parts, batch):
    """Return the samples that all ranks take together, step by step."""
    cuts = range(0, len(parts[0]), batch)
    return [np.concatenate([part[at : at + batch] for part in parts]) for at in cuts]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(("count", "batch"), [(60, 4), (61, 4), (59, 8), (5, 8), (1, 1)])
def test_no_sample_is_missed_or_seen_twice_in_a_pass(count, batch, size):
    stream = np.concatenate(steps(shares(count, batch, size), batch))
    for begin in range(0, count * size, count):
        assert sorted(stream[begin : begin + count]) == list(range(count))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_ranks_make_the_same_steps(size):
    parts = shares(61, 4, size)
    assert {len(part) for part in parts} == {61}
    assert Counter(np.concatenate(parts).tolist()) == dict.fromkeys(range(61), size)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_ranks_together_take_the_batches_of_one_process_with_the_global_batch(size):
    alone = np.concatenate([shares(60, 12, 1, epoch=epoch)[0] for epoch in range(size)])
    together = steps(shares(60, 12 // size, size), 12 // size)
    assert np.array_equal(np.concatenate(together), alone)


def test_each_epoch_is_shuffled_anew_and_the_same_for_the_same_seed():
    first, second = shares(50, 5, 2, epoch=0), shares(50, 5, 2, epoch=1)
    assert not np.array_equal(first[0], second[0])
    assert np.array_equal(first[0], shares(50, 5, 2, epoch=0)[0])
    assert not np.array_equal(first[0], shares(50, 5, 2, seed=2)[0])
