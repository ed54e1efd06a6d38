"""Test how `make bench-image` evaluates its measurements."""

import json

import msgspec

from tests.benchmarks.image.builds import Builds
from tests.benchmarks.image.page import page
from tests.benchmarks.image.result import Result
from tests.benchmarks.image.timed import Taken
from toolkit.image.sifs.packing import DEFAULT, PACKINGS


def taken(*seconds):
    return [Taken(wall, wall / 2, 1.0) for wall in seconds]


NAMES = [packing.name for packing in PACKINGS]
RESULT = Result(
    image="toolkit/x:latest",
    program="import x",
    started="2026-01-02T03:04:05+00:00",
    processors=2,
    image_bytes=2_000_000_000,
    sizes={"plain": 400_000_000, **dict.fromkeys(NAMES, 300_000_000)},
    same_bytes=dict.fromkeys(NAMES, True) | {"size": False},
    conversions={"plain": taken(100, 120), **dict.fromkeys(NAMES, taken(9, 10, 11))},
    starts={
        "bare": {"warm": taken(2)},
        "plain": {"cold": taken(6), "warm": taken(5)},
        **{name: {"cold": taken(4), "warm": taken(1, 3, 30)} for name in NAMES},
    },
    builds=Builds(cold=None, edited=17.04, warm=1.5),
)


def test_the_ratios_are_of_medians_and_the_head_is_the_default_packing():
    told = json.loads(RESULT.encoded())
    assert told["conversion_ratio"] == 11.0
    assert told["sif_size_ratio"] == 0.75
    assert (told["start_ratio"], told["start_to_plain_ratio"]) == (1.5, 0.6)
    assert told["packings"][DEFAULT.name]["conversion_ratio"] == told["conversion_ratio"]
    assert (told["image_bytes"], told["sif_bytes"]) == (2_000_000_000, 300_000_000)
    assert told["reproducible"] is False
    assert told["raw"]["conversions"]["plain"][1]["wall"] == 120


def test_the_page_has_a_row_for_each_way_and_says_where_bytes_differ():
    text = page(RESULT)
    assert "| plain `apptainer build` | 110.0 s | 1.0 times | 400 MB | 1 | no |" in text
    assert f"| `--for {DEFAULT.name}` (default) | 10.0 s | 11.0 times | 300 MB | 0.750 | yes |" in text
    assert "| `--for size` | 10.0 s | 11.0 times | 300 MB | 0.750 | **no** |" in text
    assert "other work" not in text
    assert "$" not in text


def test_the_page_says_what_a_build_took_and_where_none_from_nothing_was_measured():
    text = page(RESULT)
    assert "| after a change to a trainer, including the conversion to a SIF | 17.0 s |\n" in text
    assert "| without a change | 1.5 s |" in text
    assert "build, test | not measured |" in text
    cold = msgspec.structs.replace(RESULT, builds=Builds(cold=601.6, edited=1, warm=1))
    assert "build, test | 602 s |" in page(cold)
