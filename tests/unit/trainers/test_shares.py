from collections import Counter

import numpy as np

from tests.unit.tables import every_row
from toolkit.trainers.data.shares import deal, share


def tables(count, batch, size, epoch=0, seed=1, **more):
    return [
        share(count=count, batch=batch, rank=rank, size=size, epoch=epoch, seed=seed, **more)
        for rank in range(size)
    ]


def shares(count, batch, size, epoch=0, seed=1):
    return [
        np.concatenate([table.ravel() for table in one]) for one in tables(count, batch, size, epoch, seed)
    ]


def taken(parts):
    """Return the sample numbers of all ranks in the order of steps, from each rank's tables."""
    numbers = []
    for together in zip(*parts, strict=True):
        assert len({len(table) for table in together}) == 1, "ranks make different numbers of steps"
        for rows in zip(*together, strict=True):
            numbers.extend(np.concatenate(rows).tolist())
    return numbers


def steps(parts, batch):
    cuts = range(0, len(parts[0]), batch)
    return [np.concatenate([part[at : at + batch] for part in parts]) for at in cuts]


@every_row("size", [1, 2, 3, 4, 7])
@every_row(("count", "batch"), [(60, 4), (61, 4), (59, 8), (5, 8), (1, 1)])
def test_no_sample_is_missed_or_seen_twice_in_a_pass(count, batch, size):
    stream = np.concatenate(steps(shares(count, batch, size), batch))
    for begin in range(0, count * size, count):
        assert sorted(stream[begin : begin + count]) == list(range(count))


@every_row("size", [1, 2, 3, 4])
def test_all_ranks_make_the_same_steps(size):
    parts = shares(61, 4, size)
    assert {len(part) for part in parts} == {61}
    assert Counter(np.concatenate(parts).tolist()) == dict.fromkeys(range(61), size)


@every_row("size", [2, 3, 4])
def test_ranks_together_take_the_batches_of_one_process_with_the_global_batch(size):
    alone = np.concatenate([shares(60, 12, 1, epoch=epoch)[0] for epoch in range(size)])
    together = steps(shares(60, 12 // size, size), 12 // size)
    assert np.array_equal(np.concatenate(together), alone)


def test_each_epoch_is_shuffled_anew_and_the_same_for_the_same_seed():
    first, second = shares(50, 5, 2, epoch=0), shares(50, 5, 2, epoch=1)
    assert not np.array_equal(first[0], second[0])
    assert np.array_equal(first[0], shares(50, 5, 2, epoch=0)[0])
    assert not np.array_equal(first[0], shares(50, 5, 2, seed=2)[0])


@every_row("size", [1, 2, 3])
@every_row("steps_done", [0, 1, 3, 7])
def test_ranks_that_go_on_take_the_very_samples_that_were_left(size, steps_done):
    whole = tables(61, 4, size)
    rest = tables(61, 4, size, passes=size, used_samples=steps_done * 4 * size)
    for all_of_it, left in zip(whole, rest, strict=True):
        assert np.array_equal(all_of_it[0][steps_done:], left[0])
        assert np.array_equal(all_of_it[1], left[1])


@every_row("passes", [1, 2, 3])
@every_row("size", [1, 2, 3, 5, 8])
@every_row("done", [0, 8, 24, 48])
def test_another_number_of_ranks_shares_out_what_is_left_of_the_same_stream(passes, size, done):
    stream = taken(tables(61, 4, 1, passes=passes))
    assert Counter(taken(tables(61, 4, size, passes=passes, used_samples=done))) == Counter(stream[done:])


def test_fewer_samples_than_ranks_are_each_trained_on_by_several():
    assert Counter(taken(tables(10, 4, 4, passes=1, used_samples=8))) == dict.fromkeys(
        taken(tables(10, 4, 1, passes=1))[8:], 2
    )


@every_row(("size", "devices"), [(1, 2), (2, 2), (1, 4)])
def test_devices_of_a_rank_are_dealt_what_as_many_ranks_are(size, devices):
    same = {"count": 61, "batch": 4, "epoch": 1, "seed": 1}
    ranks = [share(rank=rank, size=size * devices, **same) for rank in range(size * devices)]
    for rank in range(size):
        dealt = deal(rank=rank, size=size, devices=devices, **same)
        own = ranks[rank * devices : (rank + 1) * devices]
        assert [table.tolist() for table in dealt] == [
            np.hstack(tables).tolist() for tables in zip(*own, strict=True)
        ]


def test_devices_share_out_a_last_step_that_does_not_divide():
    # Two devices share the last 7 samples: first a step of 2 each, then a step of 2 and 1.
    whole, odd = deal(rank=0, size=1, devices=2, count=7, batch=2, epoch=0, seed=1, passes=1)
    assert (whole.shape, odd.shape) == ((1, 4), (1, 3))
    assert sorted([*whole[0], *odd[0]]) == list(range(7))
