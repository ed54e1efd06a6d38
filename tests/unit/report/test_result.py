import msgspec
import pytest

from tests.unit.launch.examples import RECORD
from tests.unit.report.trainings import COMPLETE, END, EPOCHS, HEADER, PARTIAL, job_folder, lines
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.report.study.training import summary
from toolkit.study.result import parse_metrics, read_record, read_training, summarise


def test_a_result_joins_metrics_and_record():
    result = summarise(parse_metrics(COMPLETE), RECORD)
    assert result.complete
    assert (result.world_size, result.nodes, result.epochs, result.epochs_planned) == (2, 2, 2, 2)
    assert result.test_accuracy == EPOCHS[1]["test_accuracy"]
    assert (result.images, result.seconds, result.images_per_second) == (240000, 6.0, 40000.0)
    assert result.seconds_per_epoch == (4.0, 2.0)
    assert (result.mode, result.image_digest) == ("srun-pmix", "sha256:00")
    assert (result.job, result.job_id) == (RECORD.key, RECORD.id)


def test_a_result_has_the_fields_that_are_promised():
    told = msgspec.json.decode(msgspec.json.encode(summarise(parse_metrics(COMPLETE), RECORD)))
    assert told["schema"] == "toolkit.result/1"
    promised = {"test_accuracy", "world_size", "nodes", "epochs", "images_per_second", "mode", "image_digest"}
    assert promised <= told.keys()


def test_metrics_without_a_record_leave_open_what_only_the_record_tells():
    result = summarise(parse_metrics(COMPLETE), None)
    assert (result.mode, result.image_digest, result.job) == (None, None, None)


def test_a_file_cut_off_in_a_line_is_read_up_to_there_and_called_partial():
    training = parse_metrics(PARTIAL)
    assert [one.epoch for one in training.epochs] == [1]
    result = summarise(training, None)
    assert (result.complete, result.epochs, result.epochs_planned) == (False, 1, 2)
    assert result.test_accuracy == EPOCHS[0]["test_accuracy"]


def test_all_epochs_without_the_last_line_are_partial_too():
    assert not parse_metrics(lines(HEADER, *EPOCHS)).complete


def test_fields_of_a_later_release_are_passed_over():
    later = lines({**HEADER, "gpus": 4}, {**EPOCHS[0], "lr": 1}, END)
    assert parse_metrics(later).epochs[0].epoch == 1


def test_a_training_too_short_for_its_clock_has_no_speed():
    result = summarise(parse_metrics(lines(HEADER, {**EPOCHS[0], "seconds": 0.0}, END)), None)
    assert (result.seconds, result.images_per_second) == (0.0, None)
    assert "speed          - over 0.0 s" in summary(result).splitlines()


@every_row(
    ("text", "said"),
    [
        (b"", "metrics.jsonl: the first line is not a metrics header"),
        (lines(EPOCHS[0]), "metrics.jsonl: the first line is not a metrics header"),
        (b"no json\n", "metrics.jsonl:1: "),
        (lines(HEADER) + b"{}\n", "metrics.jsonl:2: .*record"),
        (lines(HEADER, {**EPOCHS[0], "loss": "low"}), "metrics.jsonl:2: .*loss"),
        (lines({**HEADER, "schema": "toolkit.metrics/9"}), "unknown schema toolkit.metrics/9"),
    ],
)
def test_what_is_no_file_of_metrics_is_told_with_its_line(text, said):
    with pytest.raises(BadInput, match=said):
        parse_metrics(text)


@every_row(
    ("field", "value"),
    [
        ("epoch", 10**30),
        ("epoch", -1),
        ("images", 2**53 + 1),
        ("seconds", 1e41),
        ("loss", 10**400),
        ("test_accuracy", -1e41),
    ],
)
def test_numbers_that_no_plot_can_show_are_refused_with_line_and_field(field, value):
    with pytest.raises(BadInput, match=rf"^m:2: .*at `\$\.{field}`"):
        parse_metrics(lines(HEADER, {**EPOCHS[0], field: value}), "m")


@every_row("field", ["trainer", "strategy"])
def test_names_longer_than_those_of_files_are_refused(field):
    with pytest.raises(BadInput, match=rf"^m:1: .*{field}"):
        parse_metrics(lines({**HEADER, field: "x" * 256}, EPOCHS[0]), "m")


def test_a_folder_without_metrics_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"does not contain metrics.jsonl"):
        read_training(tmp_path)


def test_a_training_that_finished_no_epoch_is_no_result(tmp_path):
    with pytest.raises(CheckFailed, match="no epoch was finished"):
        read_training(job_folder(tmp_path, lines(HEADER)))


def test_a_record_is_read_where_there_is_one(tmp_path):
    assert read_record(tmp_path) is None
    assert read_record(job_folder(tmp_path)) == RECORD


def test_a_broken_record_is_named(tmp_path):
    (tmp_path / "record.json").write_text("{")
    with pytest.raises(BadInput, match=r"record.json: not a job record"):
        read_record(tmp_path)


def test_a_training_that_went_on_is_read_with_the_size_that_it_had_in_the_end():
    resumed = {"record": "resumed", "checkpoint": "1-000", "epoch": 2, "world_size": 3, "nodes": 3}
    result = summarise(parse_metrics(lines(HEADER, EPOCHS[0], resumed, EPOCHS[1], END)), RECORD)
    assert (result.resumed, result.world_size, result.nodes, result.epochs) == (1, 3, 3, 2)
    assert result.batch_size == HEADER["batch_size"]
    assert "from a checkpoint; number of resumes: 1" in summary(result)


def test_lines_of_a_later_kind_are_passed_over_and_nonsense_is_not():
    later = {"record": "weather", "degrees": 12}
    assert parse_metrics(lines(HEADER, later, *EPOCHS, END)) == parse_metrics(COMPLETE)
    with pytest.raises(BadInput, match=r":2: .*record"):
        parse_metrics(lines(HEADER, {"degrees": 12}))
