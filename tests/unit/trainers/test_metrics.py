import json

import pytest

from toolkit.trainers.metrics import FILE, Metrics


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


def test_no_file_ever_holds_what_json_has_no_word_for(tmp_path):
    with Metrics(tmp_path) as metrics, pytest.raises(ValueError, match="not JSON compliant"):
        metrics.epoch(loss=float("nan"))
