import json
import os

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.training.metrics import FILE, Metrics, is_finished
from toolkit.trainers.trouble import Trouble


def test_each_line_is_whole_as_soon_as_it_is_written(tmp_path):
    with Metrics(tmp_path / "new" / "folder") as metrics:
        metrics.header(trainer="mnist", versions={"python": "3.11.2"})
        metrics.epoch(epoch=1, loss=0.5)
        text = (tmp_path / "new" / "folder" / FILE).read_text()
        assert text.endswith("\n")
        header, epoch = (json.loads(line) for line in text.splitlines())
        assert header == {
            "record": "header",
            "schema": "toolkit.metrics/1",
            "trainer": "mnist",
            "versions": {"python": "3.11.2"},
        }
        assert epoch == {"record": "epoch", "epoch": 1, "loss": 0.5}
        metrics.result(test_accuracy=0.9)
    assert json.loads((tmp_path / "new" / "folder" / FILE).read_text().splitlines()[-1])["record"] == "result"


def test_an_earlier_runs_metrics_are_replaced(tmp_path):
    (tmp_path / FILE).write_text("old\n" * 9)
    with Metrics(tmp_path) as metrics:
        metrics.header(trainer="mnist")
    assert "old" not in (tmp_path / FILE).read_text()


def test_other_ranks_write_nothing(tmp_path):
    with Metrics(None) as metrics:
        metrics.header(trainer="mnist")
        metrics.epoch(epoch=1)
        metrics.result(test_accuracy=0.9)
    assert not list(tmp_path.iterdir())


@every_row("value", ["nan", "inf", "-inf"])
def test_what_json_has_no_word_for_is_not_known(tmp_path, value):
    with Metrics(tmp_path) as metrics:
        metrics.header(trainer="mnist")
        metrics.epoch(epoch=1, test_loss=float(value))
        metrics.result(test_loss=float(value), model="model.keras")
    header, *others = map(json.loads, (tmp_path / FILE).read_text().splitlines())
    assert others == [
        {"record": "epoch", "epoch": 1, "test_loss": None},
        {"record": "result", "test_loss": None, "model": "model.keras"},
    ]
    # A checkpoint stores the same records.
    assert metrics.records == [header, *others]


def test_a_run_that_does_not_get_to_its_header_leaves_the_earlier_result(tmp_path):
    (tmp_path / FILE).write_text("old\n")
    with pytest.raises(RuntimeError), Metrics(tmp_path):
        raise RuntimeError
    with Metrics(tmp_path) as metrics, pytest.raises(ValueError, match="not JSON compliant"):
        metrics.header(learning_rate=float("inf"))
    assert (tmp_path / FILE).read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_place_that_takes_no_file_is_one_line_with_the_path(tmp_path):
    (tmp_path / FILE).mkdir()
    with Metrics(tmp_path) as metrics, pytest.raises(Trouble) as told:
        metrics.header(trainer="mnist")
    assert (told.value.code, told.value.message) == (
        1,
        f"{tmp_path / FILE}: cannot be written: Is a directory",
    )
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_full_disk_is_one_line_with_the_path(tmp_path):
    (tmp_path / f".{FILE}.{os.getpid()}.part").symlink_to("/dev/full")
    said = r"metrics\.jsonl: cannot be written: No space left on device"
    with Metrics(tmp_path) as metrics, pytest.raises(Trouble, match=said):
        metrics.header(trainer="mnist")
    assert not list(tmp_path.iterdir())


def test_a_training_that_goes_on_writes_its_earlier_lines_and_says_so(tmp_path):
    (tmp_path / FILE).write_text('{"record": "header"}\n{"record": "epoch", "epoch": 1}\n{"rec')
    before = [{"record": "header"}, {"record": "epoch", "epoch": 1}]
    with Metrics(tmp_path) as metrics:
        metrics.resumed(before, epoch=2)
        metrics.epoch(epoch=2)
        lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert lines == metrics.records
    assert lines == [*before, {"record": "resumed", "epoch": 2}, {"record": "epoch", "epoch": 2}]


@every_row(
    ("text", "done"),
    [
        ('{"record": "header"}\n{"record": "result"}\n', True),
        ('{"record": "header"}\n{"record": "epoch"}\n', False),
        ('{"record": "header"}\n{"rec', False),
        ("7\n", False),
        ("", False),
        (None, False),
    ],
)
def test_a_result_says_that_a_training_came_to_its_end(tmp_path, text, done):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    assert is_finished(tmp_path) is done
