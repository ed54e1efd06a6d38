"""Test which gradients a rank sends in one message, and which steps use an older average."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from toolkit.trainers.ranks.fusion import buckets, is_delayed, split

SIZES = st.lists(st.integers(1, 50), max_size=30)


@given(SIZES, st.integers(1, 60))
def test_every_tensor_is_in_one_bucket_from_the_last_on(sizes, limit):
    plan = buckets(sizes, ["float32"] * len(sizes), limit)
    assert [number for bucket in plan for number in bucket] == list(reversed(range(len(sizes))))
    for bucket in plan:
        assert len(bucket) == 1 or sum(sizes[number] for number in bucket) <= limit


@given(SIZES, st.integers(1, 60))
def test_no_two_neighbours_would_fit_into_one(sizes, limit):
    plan = buckets(sizes, ["float32"] * len(sizes), limit)
    for bucket, following in pairwise(plan):
        assert sum(sizes[number] for number in bucket) + sizes[following[0]] > limit


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["float32", "float64"])), max_size=20))
def test_types_are_not_mixed(tensors):
    kinds = [kind for _, kind in tensors]
    for bucket in buckets([size for size, _ in tensors], kinds, 20):
        assert len({kinds[number] for number in bucket}) == 1


def test_a_schedule_has_its_synchronous_steps_first_or_last():
    def late(ksteps):
        return [is_delayed(step, ksteps, 5) for step in range(5)]

    assert late(5) == [False] * 5
    assert late(0) == [True] * 5
    assert late(2) == [False, False, True, True, True]
    assert late(-2) == [True, True, True, False, False]


@given(SIZES)
def test_places_in_a_bucket_follow_each_other(sizes):
    places = split(sizes)
    assert [stop - start for start, stop in places] == sizes
    assert [start for start, _ in places][1:] == [stop for _, stop in places][:-1]
