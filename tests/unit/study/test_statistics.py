import pytest

from tests.unit.study.studies import SHARES, point, study
from toolkit.study.statistics import MedianSpread, curves


def test_a_size_is_the_median_of_its_runs_with_their_spread():
    runs = [point(1, seconds, number=n) for n, seconds in ((1, 9.0), (2, 10.0), (3, 12.0))]
    (curve,) = curves(study([(1, 1), (2, 1)]), [*runs, point(2, 5.0)])
    one, two = curve.points
    assert one.seconds == MedianSpread(10.0, 9.0, 12.0)
    assert one.speedup == MedianSpread(1, 1, 1)
    assert two.speedup.value == 2.0
    # The spread of the times at the smallest size counts, too.
    assert two.speedup.low == pytest.approx(2 / 1.1)
    assert two.speedup.high == pytest.approx(2 * 1.2)
    assert two.efficiency.value == 1.0
    assert two.rate.value == 200.0


def test_a_timeline_gives_shares_and_no_time():
    slow = point(2, 50.0, profile=True, shares=SHARES)
    (curve,) = curves(study([(1, 1), (2, 1)]), [point(1, 10.0), point(2, 5.0), slow])
    assert curve.points[1].runs == (5.0,)
    assert curve.points[1].shares == SHARES


def test_failed_runs_are_left_out_and_a_series_without_any_has_no_curve():
    made = study([(1, 1)], compare="mode", values=("srun-pmix", "gloo"))
    failed = point(1, 1.0, series="gloo", state="failed", figures=None)
    (curve,) = curves(made, [point(1, 3.0, series="srun-pmix"), failed])
    assert curve.series == "srun-pmix"
    assert curves(made, [failed]) == []


def test_each_number_of_nodes_is_a_curve_that_begins_at_the_smallest_size():
    points = [point(1, 8.0), point(2, 4.0), point(2, 5.0, nodes=2), point(4, 3.0, nodes=2)]
    one, two = curves(study([(1, 1), (2, 1), (2, 2), (4, 2)]), points)
    assert (one.node_label, [(p.ranks, p.nodes) for p in one.points]) == ("on 1 node", [(1, 1), (2, 1)])
    assert (two.node_label, [(p.ranks, p.nodes) for p in two.points]) == (
        "on 2 nodes",
        [(1, 1), (2, 2), (4, 2)],
    )
    assert two.points[2].speedup.value == pytest.approx(8 / 3)


def test_a_study_that_begins_at_two_ranks_counts_from_there():
    (curve,) = curves(study([(2, 1), (4, 1)]), [point(2, 8.0), point(4, 4.0)])
    assert [p.speedup.value for p in curve.points] == [2.0, 4.0]
    assert curve.steps == 100


def test_what_ranks_wait_for_samples_is_taken_out_of_the_computation():
    slow = point(2, 50.0, profile=True, shares=SHARES)
    runs = [point(2, 5.0, number=n, waiting=part) for n, part in ((1, 0.1), (2, 0.2), (3, 0.9))]
    (curve,) = curves(study([(1, 1), (2, 1)]), [point(1, 10.0, waiting=0.3), *runs, slow])
    one, two = curve.points
    assert one.parts == {"compute": 0.7, "input": 0.3}
    assert two.waiting == 0.2
    assert two.parts == pytest.approx(
        {"reduce": 0.25, "copy": 0.05, "queue": 0.0, "negotiate": 0.1, "input": 0.2, "compute": 0.4}
    )
    assert sum(two.parts.values()) == pytest.approx(1.0)


def test_where_a_step_goes_is_unknown_of_several_ranks_without_a_timeline():
    (curve,) = curves(study([(1, 1), (2, 1)]), [point(1, 10.0), point(2, 5.0, waiting=0.2)])
    assert [one.parts for one in curve.points] == [None, None]
