import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.benchmarks.timeline.made import make
from tests.unit.study.studies import TIMELINE
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.errors import BadInput
from toolkit.study import advice, timeline, timeline_file


def read(file):
    return timeline.tally_events(timeline_file.events(file))


@pytest.fixture
def small(tmp_path):
    make(tmp_path / "timeline.json", 1_500_000)
    return tmp_path / "timeline.json"


def step(at, *tensors, end=True, late=50, took=400):
    """Return the timeline events of a step: one negotiation per tensor, and one reduction of all tensors."""
    lines = []
    for number, pid in enumerate(tensors):
        ts = at + 10 * number
        lines += [
            {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": ts, "pid": pid},
            {"ph": "X", "name": "0", "ts": ts, "pid": pid, "dur": 0},
            {"ph": "X", "name": "1", "ts": ts + late, "pid": pid, "dur": 0},
            {"ph": "E", "ts": ts + late, "pid": pid},
        ]
    begun = at + 10 * len(tensors) + late
    lines += [{"ph": "B", "name": "ALLREDUCE", "ts": begun, "pid": pid} for pid in tensors]
    lines += [{"ph": "B", "name": "MPI_ALLREDUCE", "ts": begun, "pid": pid} for pid in tensors]
    lines += [{"ph": "E", "ts": begun + took, "pid": pid} for pid in tensors]
    args = {"dtype": "float32", "shape": "[100, 10]"}
    lines += [{"ph": "E", "ts": begun + took, "pid": pid, "args": args} for pid in tensors if end]
    return sorted(lines, key=lambda line: line["ts"])


def written(file, lines, *, end=""):
    file.write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + end)
    return file


def test_a_real_timeline_of_two_ranks_tells_its_steps():
    tally = read(TIMELINE)
    found = timeline.shares(tally)
    # The two epochs have 40 steps; a step before an evaluation does not count.
    assert 36 <= found.steps <= 40
    assert sum((found.negotiate, found.queue, found.copy, found.reduce, found.compute)) == pytest.approx(1)
    assert 0.3 < found.reduce < 0.7
    assert set(found.last_ranks) == {"0", "1"}
    gradients = {t.size for t in tally.tensors.values() if t.allreduces == 40}
    assert gradients == {784 * 512 * 4, 512 * 4, 512 * 10 * 4, 10 * 4}


def test_what_is_suggested_holds_the_gradients_of_the_real_one_in_one_reduction():
    found = advice.advise(read(TIMELINE))
    assert found.gradient == 407_050 * 4
    assert (found.groups, found.threshold) == (1, 2 << 20)
    assert found.variables[0] == "HOROVOD_FUSION_THRESHOLD=2097152"
    assert found.cycle_now == pytest.approx(0.18, abs=0.05)


def test_a_cycle_at_its_upper_limit_is_said_to_delay_small_gradients_if_longer():
    tally = read(TIMELINE)
    for step_number in range(len(tally.ready)):
        tally.ready[step_number] = 10_000_000
    found = advice.advise(tally)
    assert found.cycle == 25
    assert "a longer cycle than 25 ms would delay small gradients" in found.reasons[-1]


def test_a_timeline_is_read_alike_however_it_ends(tmp_path, small):
    whole = read(small)
    assert whole.events > 10_000
    text = small.read_text()
    closed = tmp_path / "closed.json"
    closed.write_text(text.rstrip().rstrip(",") + "\n]\n")
    assert len(json.loads(closed.read_text())) == whole.events
    assert read(closed).events == whole.events
    cut = tmp_path / "cut.json"
    cut.write_text(text[:-40])
    assert whole.events - 2 <= read(cut).events < whole.events


def test_events_that_lie_across_two_pieces_are_read_once(small, monkeypatch):
    whole = timeline.shares(read(small))
    monkeypatch.setattr(timeline_file, "_CHUNK", 1000)
    assert timeline.shares(read(small)) == whole


def test_parts_of_a_step_are_those_that_it_was_made_of(tmp_path):
    lines = [line for number in range(10) for line in step(1000 * number, 1, 2)]
    found = timeline.shares(read(written(tmp_path / "t.json", lines)))
    # A step of 1000 microseconds: negotiation from 0 to 60, reduction from 70 to 470.
    assert found.step_seconds == pytest.approx(0.001)
    assert found.negotiate == pytest.approx(0.06)
    assert found.reduce == pytest.approx(0.4)
    assert found.compute == pytest.approx(0.54)
    assert found.last_ranks == {"1": 1.0}


def test_an_evaluation_between_two_epochs_is_no_step(tmp_path):
    starts = [*range(0, 10_000, 1000), *range(500_000, 510_000, 1000)]
    lines = [line for at in starts for line in step(at, 1)]
    found = timeline.shares(read(written(tmp_path / "t.json", lines)))
    assert found.steps == 18
    assert found.step_seconds == pytest.approx(0.001)


def test_the_lag_of_a_rank_is_that_behind_the_first_one(tmp_path):
    lines = [line for number in range(4) for line in step(1000 * number, 1, late=80)]
    tally = read(written(tmp_path / "t.json", lines))
    assert (tally.negotiations, tally.last_counts, tally.delays) == (4, {"1": 4}, {"0": 0.0, "1": 320.0})


def test_gradients_that_become_ready_slowly_are_reduced_in_groups(tmp_path, small):
    found = advice.advise(read(small))
    assert found.groups > 1
    assert found.threshold >= found.gradient / found.groups
    assert found.start == pytest.approx(3.5, rel=0.1)
    assert any("during the computation of later gradients" in reason for reason in found.reasons)


def test_too_little_gives_no_advice(tmp_path):
    tally = read(written(tmp_path / "t.json", step(0, 1)))
    assert timeline.shares(tally) is None
    assert advice.advise(tally) is None


@every_row(
    ("text", "said"),
    [
        ("", "is empty"),
        ("{}", "does not begin with"),
        ('[{"ph": 1, "ts": 0},{"ph": "B"}]', "Expected `str`, got `int`"),
        ('[{"ph": "B"} what {"ph": "E"},{"ph": "B"}]', "from byte 0"),
    ],
)
def test_what_is_no_timeline_is_told_with_its_place(tmp_path, text, said):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(BadInput, match=said):
        read(tmp_path / "t.json")


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(BadInput, match="No such file"):
        read(tmp_path / "none.json")


@settings(max_examples=count(25, 100), deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader_otherwise_than_in_one_line(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("t") / "t.json"
    file.write_bytes(b"[" + content)
    try:
        read(file)
    except BadInput as error:
        assert str(file) in error.message


@settings(max_examples=count(20, 60), deadline=None)
@given(st.integers(0, 20_000))
def test_a_timeline_may_be_cut_anywhere(tmp_path_factory, at):
    file = tmp_path_factory.mktemp("t") / "t.json"
    file.write_bytes(TIMELINE.read_bytes()[: max(at, 1)])
    read(file)
