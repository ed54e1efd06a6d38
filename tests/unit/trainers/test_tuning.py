"""Test which Horovod settings come from the options and the environment."""

from pathlib import Path

from tests.unit.tables import every_row
from toolkit.trainers.ranks.tuning import LARGE, UNTUNED, Tuning


def test_nothing_is_set_that_was_not_asked_for():
    environment = {}
    assert UNTUNED.apply("single", environment) is None
    assert environment == {}


def test_options_become_what_horovod_reads(tmp_path):
    environment = {"HOROVOD_CYCLE_TIME": "9"}
    tuning = Tuning(tmp_path / "timeline.json", tmp_path / "tuned.csv", fusion_mb=0.5, cycle_ms=2.5)
    assert tuning.apply("horovod", environment) is None
    assert environment == {
        "HOROVOD_TIMELINE": str(tmp_path / "timeline.json"),
        "HOROVOD_TIMELINE_MARK_CYCLES": "1",
        "HOROVOD_AUTOTUNE": "1",
        "HOROVOD_AUTOTUNE_LOG": str(tmp_path / "tuned.csv"),
        "HOROVOD_FUSION_THRESHOLD": "524288",
        "HOROVOD_CYCLE_TIME": "2.5",
    }


@every_row(
    ("tuning", "strategy", "environment", "told"),
    [
        (UNTUNED, "horovod", {}, {"HOROVOD_CYCLE_TIME": "5", "HOROVOD_FUSION_THRESHOLD": "8388608"}),
        (
            Tuning(cycle_ms=1),
            "hybrid",
            {"HOROVOD_FUSION_THRESHOLD": "7"},
            {"HOROVOD_CYCLE_TIME": "1", "HOROVOD_FUSION_THRESHOLD": "7"},
        ),
        (UNTUNED, "horovod", {"HOROVOD_AUTOTUNE": "1"}, {"HOROVOD_AUTOTUNE": "1"}),
        (UNTUNED, "single", {}, {}),
    ],
)
def test_what_is_usual_for_a_model_yields_to_options_environment_and_autotune(
    tuning, strategy, environment, told
):
    assert tuning.apply(strategy, environment, LARGE) is None
    assert environment == told


@every_row(
    ("tuning", "strategy", "said"),
    [
        (Tuning(cycle_ms=1), "single", "only for Horovod; use --strategy horovod or hybrid"),
        (
            Tuning(timeline=Path("/absent/timeline.json")),
            "horovod",
            "the folder of this file does not exist; create the folder first",
        ),
    ],
)
def test_what_has_no_effect_is_refused_and_nothing_is_set(tuning, strategy, said):
    environment = {}
    assert said in tuning.apply(strategy, environment).message
    assert environment == {}
