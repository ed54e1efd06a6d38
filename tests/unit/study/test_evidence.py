import dataclasses

import msgspec
import pytest

from tests.unit.study.studies import point, study
from toolkit.errors import BadInput
from toolkit.study.evidence import evidence
from toolkit.study.forms import Form, form_of, forms

PLAIN = Form(name="plain", title="Plain", source="here", sizes=3)
SIZES = [(1, 1), (2, 2), (4, 4)]


def found(form, points, *, script=True, walls=None, sizes=SIZES, **more):
    return evidence(form, study(sizes, **more), points, walls or {}, script=script)


def unmet(form, points, **more):
    return [demand for series in found(form, points, **more) for demand in series.demands if not demand.met]


def runs(*seconds, **more):
    return [
        point(ranks, value, nodes=nodes, **more)
        for (ranks, nodes), value in zip(SIZES, seconds, strict=False)
    ]


def test_efficiency_counts_ranks_and_compares_with_the_fewest_nodes():
    # Roihu's formula for the efficiency: p_b T_b / (p_N T_N).
    (series,) = found(PLAIN, runs(8.0, 4.0, 4.0))
    assert [row.nodes for row in series.rows] == [1, 2, 4]
    assert [row.speedup for row in series.rows] == [1.0, 2.0, 2.0]
    assert [row.efficiency for row in series.rows] == [1.0, 1.0, 0.5]


def test_of_one_number_of_nodes_the_most_ranks_count():
    points = [point(1, 8.0), point(2, 4.0), point(4, 2.0, nodes=2)]
    (series,) = found(PLAIN, points, sizes=[(1, 1), (2, 1), (4, 2)])
    assert [(row.nodes, row.ranks) for row in series.rows] == [(1, 2), (2, 4)]
    assert series.rows[1].efficiency == 1.0


def test_the_median_of_whole_jobs_is_the_wall_time():
    points = [
        msgspec.structs.replace(one, origin=msgspec.structs.replace(one.origin, job=f"j{n}"), number=n)
        for n, one in enumerate([point(1, 8.0), point(1, 8.0), point(1, 8.0)], 1)
    ]
    (series,) = found(PLAIN, points, walls={"j1": 100.0, "j2": 130.0, "other": 1.0})
    assert series.rows[0].wall == 115.0


def test_missing_sizes_are_named():
    (demand,) = unmet(PLAIN, runs(8.0, 4.0))
    assert demand.text == "at least 3 different numbers of nodes; measured: 1, 2"
    assert demand.fix == "run the toolkit scale command again with sizes for 4 nodes"


def test_sizes_outside_of_the_form_are_named():
    form = msgspec.structs.replace(PLAIN, nodes=(2, 3))
    (demand,) = unmet(form, runs(8.0, 4.0, 2.0))
    assert demand.text == "all runs on 2 to 3 nodes; outside: 1, 4"


def test_poor_efficiency_names_the_largest_size_that_passes():
    form = msgspec.structs.replace(PLAIN, efficiency=0.75)
    (demand,) = unmet(form, runs(8.0, 4.0, 4.0))
    assert demand.text == "parallel efficiency of 75 % or more; measured: 50 % on 4 nodes"
    assert demand.fix == "apply for at most 2 nodes"
    assert not unmet(form, runs(8.0, 4.0, 2.6))


def test_each_doubling_is_compared():
    form = msgspec.structs.replace(PLAIN, doubling=1.5)
    (demand,) = unmet(form, runs(8.0, 4.0, 3.0))
    assert demand.text == "at least 1.5 times as fast on twice the nodes; measured from 2 to 4 nodes: 1.33"


def test_other_data_are_noticed():
    points = runs(8.0, 4.0, 2.0)
    figures = msgspec.structs.replace(points[2].figures, samples=500)
    points[2] = msgspec.structs.replace(points[2], figures=figures)
    (demand,) = unmet(PLAIN, points)
    assert demand.text == "the same data for all sizes"


def test_the_use_of_gpus_and_a_script_are_asked_for():
    form = msgspec.structs.replace(PLAIN, gpu=True, script=True)
    assert [demand.text for demand in unmet(form, runs(8.0, 4.0, 2.0), script=False)] == [
        "the GPU utilisation; the study did not record the GPU utilisation for 1, 2, 4 nodes",
        "a job script",
    ]
    busy = [
        msgspec.structs.replace(one, figures=msgspec.structs.replace(one.figures, gpu=0.9))
        for one in runs(8.0, 4.0, 2.0)
    ]
    assert not unmet(form, busy)
    assert [row.gpu for row in found(form, busy)[0].rows] == [0.9, 0.9, 0.9]


def test_each_series_is_judged():
    points = [*runs(8.0, 4.0, 2.0, series="a"), *runs(8.0, 4.0, series="b")]
    both = found(PLAIN, points, compare="mode", values=("a", "b"))
    assert [(one.label, all(demand.met for demand in one.demands)) for one in both] == [
        ("a", True),
        ("b", False),
    ]
    assert dataclasses.asdict(both[0])["rows"]


def test_every_form_has_a_source_with_its_date():
    assert len(forms()) >= 2
    assert all("read 20" in form.source and "http" in form.source for form in forms().values())


def test_an_unknown_form_names_those_that_exist():
    with pytest.raises(BadInput, match="no such form") as told:
        form_of("lumi")
    assert "csc-roihu-gpularge" in told.value.fix


@pytest.mark.parametrize(
    ("name", "nodes", "sizes", "efficiency", "doubling", "script", "gpu"),
    [
        ("csc-roihu-large", (6, 60), 3, 0.75, 0.0, True, False),
        ("csc-roihu-gpularge", (1, 10), 3, 0.75, 0.0, True, True),
        ("archer2-ta", None, 2, 0.0, 0.0, False, False),
        ("sigma2", None, 2, 0.0, 1.5, False, False),
    ],
)
def test_a_form_requires_what_the_centre_requires(name, nodes, sizes, efficiency, doubling, script, gpu):
    form = form_of(name)
    required = (form.nodes, form.sizes, form.efficiency, form.doubling, form.script, form.gpu)
    assert required == (nodes, sizes, efficiency, doubling, script, gpu)
