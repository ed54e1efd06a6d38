"""Test that the page on accuracy shows the measured and the required accuracy."""

import re

import msgspec
import pytest

from tests.benchmarks.accuracy.cases import STRATEGIES, Case, Reached, cases
from tests.benchmarks.accuracy.page import Found, page
from tests.benchmarks.accuracy.run import kept


def reached(case: Case, accuracy: float) -> Reached:
    return Reached(
        case=case,
        accuracy=accuracy,
        seconds=12.3,
        world_size=case.nodes * case.ranks,
        epochs=4,
        batch_size=32,
        images=240000,
        mode="srun-pmix",
        image="sha256:ab",
    )


def found(*more: Reached) -> Found:
    return Found(started="2026-11-22T05:00:00+00:00", processors=2, reached=list(more))


def group(name: str) -> list[Case]:
    return [case for case in cases() if case.group == name]


def test_a_group_shows_its_median_and_each():
    each = zip(group("mnist, one rank"), (0.9819, 0.9778, 0.9799), strict=True)
    text = page(found(*(reached(case, accuracy) for case, accuracy in each)))
    assert "| mnist, one rank | 0.9799 | 0.9819, 0.9778, 0.9799 |" in text
    assert "mnist, two nodes" not in text


def test_a_strategy_is_shown_beside_single():
    (single,), (other,) = group("mnist, single"), group("mnist, ps")
    text = page(found(reached(single, 0.9800), reached(other, 0.9763)))
    assert re.search(r"\| `ps` \| 4 \| 240,000 \| 0.9763 \| -0.37 % \|", text)
    assert "| `ps` |" not in page(found(reached(other, 0.9763)))


def test_every_strategy_and_every_command_is_there():
    assert {case.options[1] for case in cases() if case.options} == set(STRATEGIES)
    text = page(found(*(reached(case, 0.98) for case in cases())))
    assert text.count("`toolkit launch ") == len(cases())


def test_what_was_found_before_is_read_again(tmp_path):
    before = found(reached(cases()[0], 0.98))
    path = tmp_path / "accuracy.json"
    assert kept(path).reached == []
    path.write_bytes(msgspec.json.encode(before))
    assert kept(path) == before


def test_a_file_that_is_none_of_ours_is_refused(tmp_path):
    path = tmp_path / "accuracy.json"
    path.write_text("{}")
    with pytest.raises(msgspec.ValidationError):
        kept(path)
