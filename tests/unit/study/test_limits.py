import msgspec

from tests.unit.study.studies import SHARES, point, study
from tests.unit.tables import every_row
from toolkit.study import fit, limits
from toolkit.study.statistics import curves


def said(points, **more):
    sizes = sorted({(p.ranks, p.nodes) for p in points})
    (curve,) = curves(study(sizes, **more), points)
    return limits.sentences(curve, fit.fit(curve), fit.check(curve))


def timeline(ranks, **more):
    return point(ranks, 99.0, profile=True, shares=msgspec.structs.replace(SHARES, **more))


def test_one_size_says_that_another_is_needed():
    assert said([point(1, 4.0)]) == [
        "Measured only on 1 rank: measure a second size to see how the training scales."
    ]


def test_what_is_reached_comes_first():
    first, *others = said([point(1, 8.0), point(2, 4.1), point(4, 2.05)])
    assert (
        first == "On 4 ranks on 1 node an epoch takes 2.05 s, 3.9 times as fast as on 1 rank: 98 % of ideal."
    )
    assert "near the ideal" in others[0]
    assert "within" in others[-1]


def test_the_largest_measured_share_is_named_first():
    words = said([point(1, 8.0), point(2, 6.6), timeline(2, reduce=0.3, negotiate=0.1)])
    assert "What limits the speed most: on 2 ranks the allreduce takes 30 % of a step" in words[1]
    assert (
        "The next limit: on 2 ranks the ranks wait for each other during 10 % of a step; rank 1 is the last "
        "in 90 %" in words[2]
    )


def test_computation_that_gets_slower_is_no_fault_of_the_network():
    words = said(
        [point(1, 8.0), point(2, 7.8), timeline(2, compute=0.95, reduce=0.05, negotiate=0.0, copy=0.0)]
    )
    assert "computation between allreduces takes 1.9 times as long as expected" in words[1]


def test_without_shares_it_says_how_they_are_measured():
    words = said([point(1, 8.0), point(2, 7.0)])
    assert "--profile" in words[1]
    assert "a third size" in words[2]


def test_ranks_that_had_different_numbers_of_cores_are_told():
    alone = point(1, 4.0)
    alone = msgspec.structs.replace(alone, figures=msgspec.structs.replace(alone.figures, threads=2))
    words = said([alone, point(2, 4.0)])
    assert any(
        "rank differs: 2 in the run with 1 rank, but 1 in the run with 2 ranks. Set `--cpus-per-rank" in text
        for text in words
    )


def test_more_ranks_that_take_longer_are_called_so():
    assert "longer than the 4 s on 1 rank: more ranks do not help" in said([point(1, 4.0), point(2, 5.0)])[0]


def test_a_check_that_does_not_hold_is_told():
    points = [point(n, s, number=i) for n, s in ((1, 8.0), (2, 4.0), (4, 9.0)) for i in (1, 2)]
    assert any(
        "which is outside this range: the model does not describe this machine well" in text
        for text in said(points)
    )


def test_a_model_that_could_be_anything_is_not_quoted():
    points = [
        point(n, s, number=i) for n, s in ((1, 8.0), (2, 5.0), (4, 6.0)) for i, s in ((1, s), (2, 3 * s))
    ]
    words = said(points)
    assert any("vary too much" in text for text in words)
    assert not any("By the model" in text for text in words)
    assert "is wide" in words[-1]


def test_figures_are_said_with_the_digits_that_matter():
    assert [limits.percent(p) for p in (0.5, 0.0312, 0, 1)] == ["50 %", "3.1 %", "0 %", "100 %"]
    assert [limits.duration(s) for s in (1234.5, 12.34, 0.0123)] == ["1,234 s", "12.3 s", "12.3 ms"]


def test_input_is_named_where_it_limits():
    words = said([point(1, 8.0), point(2, 6.6, waiting=0.35), timeline(2, reduce=0.3, negotiate=0.1)])
    assert words[1].startswith(
        "What limits the speed most: on 2 ranks each rank waits for training samples 35 % of the time"
    )
    assert "the allreduce takes 30 %" in words[2]


def test_computation_that_waits_for_samples_is_no_slower_computation():
    shares = timeline(2, compute=0.95, reduce=0.05, negotiate=0.0, copy=0.0)
    words = said([point(1, 8.0, waiting=0.0), point(2, 7.8, waiting=0.45), shares])
    assert "waits for training samples 45 % of the time" in words[1]
    assert not any("as long as expected" in text for text in words)


@every_row("points", [[point(1, 8.0, waiting=0.4)], [point(1, 8.0), point(2, 4.0, waiting=0.4)]])
def test_input_is_named_without_a_timeline_too(points):
    assert any("Known limits: on " in text and "40 % of the time" in text for text in said(points))


def test_a_moments_wait_is_not_worth_a_sentence():
    words = said([point(1, 8.0, waiting=0.01), point(2, 7.0, waiting=0.01)])
    assert not any("samples" in text for text in words)
