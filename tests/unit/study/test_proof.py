"""Test the sentences that say whether a timeline's suggestion made the training faster."""

from tests.unit.study.studies import TIMELINE, kept, point, study
from tests.unit.tables import every_row
from toolkit.report.study.study_page import page
from toolkit.report.study.study_plots import plots
from toolkit.report.study.study_text import text_of
from toolkit.study import proof
from toolkit.study.advice import advise
from toolkit.study.report import read
from toolkit.study.statistics import curves
from toolkit.study.timeline import tally_events
from toolkit.study.timeline_file import events

SETTINGS = {
    "default": {},
    "suggested": {"HOROVOD_FUSION_THRESHOLD": "2097152", "HOROVOD_CYCLE_TIME": "1"},
    "autotune": {"HOROVOD_AUTOTUNE": "1"},
}


def runs(series, *seconds):
    return [point(2, one, nodes=2, number=n, series=series) for n, one in enumerate(seconds, 1)]


def made(**more):
    return study([(2, 2)], values=tuple(SETTINGS), settings=SETTINGS, repeats=3, **more)


def said(points):
    return proof.verdicts(made(), curves(made(), points))


DEFAULT, TUNED = runs("default", 2.0, 2.1, 1.9), runs("autotune", 1.5, 1.6, 1.7)


def test_an_advice_becomes_the_series_that_prove_it():
    advice = advise(tally_events(events(TIMELINE)))
    found = proof.settings(advice)
    assert list(found) == ["default", "suggested", "autotune"]
    assert found["default"] == {}
    assert found["suggested"] == {
        "HOROVOD_FUSION_THRESHOLD": str(advice.threshold), "HOROVOD_CYCLE_TIME": f"{advice.cycle:g}"
    }  # fmt: skip
    assert found["autotune"] == {"HOROVOD_AUTOTUNE": "1"}


@every_row(
    ("seconds", "first", "second"),
    [
        (
            (1.2, 1.3, 1.4),
            "help: an epoch takes 1.3 s (1.2 s to 1.4 s), 35 % less than 2 s (1.9 s to 2.1 s) without these",
            "an epoch takes 1.6 s (1.5 s to 1.7 s), 23 % more than with the suggested settings.",
        ),
        (
            (1.6, 1.95, 2.2),
            "the suggested settings make no measurable difference: an epoch takes 1.95 s",
            "with no measurable difference from the suggested settings.",
        ),
        (
            (2.4, 2.5, 2.6),
            "the suggested settings do not help: an epoch takes 2.5 s (2.4 s to 2.6 s), 25 % more than 2 s",
            "an epoch takes 1.6 s (1.5 s to 1.7 s), 36 % less than with the suggested settings.",
        ),
    ],
)
def test_the_suggestion_held_or_did_not_or_nobody_can_tell(seconds, first, second):
    head, one, other = said([*DEFAULT, *TUNED, *runs("suggested", *seconds)])
    assert head == "Suggested: HOROVOD_FUSION_THRESHOLD=2097152 HOROVOD_CYCLE_TIME=1"
    assert one.startswith("On 2 ranks on 2 nodes, ")
    assert first in one
    assert second in other


def test_what_one_run_of_each_says_may_be_chance():
    _, one = said([*runs("default", 2.0), *runs("suggested", 1.0)])
    assert one.endswith(
        "50 % less than 2 s without these settings; with so few runs, this result may be due to chance: "
        "run again with `--repeat 3`."
    )


def test_without_the_suggestion_measured_there_is_no_verdict():
    assert len(said(DEFAULT)) == 1
    assert proof.verdicts(study([(1, 1)]), curves(study([(1, 1)]), [point(1, 2.0)])) == []


def test_the_report_begins_with_the_verdict_and_draws_no_speed_up_of_one_size(tmp_path):
    report = read([kept(tmp_path, made(), [*DEFAULT, *TUNED, *runs("suggested", 1.2, 1.3, 1.4)])])
    drawn = plots(report)
    assert not {"speed-up", "efficiency"} & {plot.name for plot in drawn}
    for told in (page(report, drawn), text_of(report, 400)):
        assert "the suggested settings help" in told
        assert "a second size tells" not in told
    assert "1.3 s</b><span>per epoch on 2 ranks, 2 nodes</span>" in page(report, drawn)
    assert "<th>speed-up</th>" not in page(report, drawn)
