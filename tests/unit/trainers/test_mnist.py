import sys

import pytest

from tests.unit.tables import every_row
from tests.unit.trainers.digits import idx, write_digits
from toolkit.trainers.command import parse, run
from toolkit.trainers.mnist import TRAINER, check, load
from toolkit.trainers.training.train import epochs_each
from toolkit.trainers.trouble import Trouble


@pytest.fixture
def data(tmp_path):
    return write_digits(tmp_path / "data")


def ended(words, capsys):
    with pytest.raises(SystemExit) as end:
        run(TRAINER, words)
    told = capsys.readouterr().err
    assert "Traceback" not in told
    return end.value.code, told


def test_the_four_files_are_read_as_they_are(data):
    check(data)
    train, test = load(data)
    assert (train.inputs.shape, len(train), len(test)) == ((6, 28, 28), 6, 2)
    assert train.classes.tolist() == [0, 1, 2, 3, 4, 5]


def test_images_of_another_size_are_refused(data):
    (data / "train-images-idx3-ubyte").write_bytes(idx((6, 32, 32), bytes(6 * 32 * 32)))
    with pytest.raises(
        Trouble, match="train-images-idx3-ubyte: the images have 32 x 32 pixels instead of 28 x 28"
    ):
        check(data)


def test_images_without_a_label_each_are_refused(data):
    (data / "t10k-labels-idx1-ubyte").write_bytes(idx((1,), b"\0"))
    with pytest.raises(
        Trouble, match="t10k-labels-idx1-ubyte: the file has 1 labels for the 2 images in t10k-images"
    ):
        check(data)


def test_an_empty_data_set_is_refused(tmp_path):
    with pytest.raises(Trouble, match="has 0 labels"):
        check(write_digits(tmp_path, train=0))


def test_a_label_that_is_no_digit_is_refused(data):
    (data / "train-labels-idx1-ubyte").write_bytes(idx((6,), bytes((0, 1, 2, 3, 4, 11))))
    with pytest.raises(Trouble, match="contains the label 11, but labels must be 0 to 9"):
        load(data)


@every_row(("size", "each"), [(1, 4), (2, 2), (3, 2), (4, 1), (8, 1)])
def test_epochs_are_shared_out_and_rounded_up(size, each):
    assert epochs_each(4, size) == each


def test_defaults_are_those_of_the_tutorial(tmp_path):
    trainer, options = parse(TRAINER, ["--data", str(tmp_path), "--output", str(tmp_path)])
    assert trainer is TRAINER
    assert (options.strategy, options.epochs, options.batch_size) == ("single", 4, 32)
    assert options.learning.learning_rate == 0.001


@every_row(
    "wrong",
    [
        ["--epochs", "0"],
        ["--batch-size", "-1"],
        ["--batch-size", "many"],
        ["--learning-rate", "0"],
        ["--learning-rate", "inf"],
        ["--seed", "-1"],
        ["--seed", str(2**31)],
        ["--strategy", "magic"],
        ["--epoch", "1"],
    ],
)
def test_a_wrong_option_ends_with_status_2_and_its_name(wrong, capsys):
    with pytest.raises(SystemExit) as end:
        parse(TRAINER, ["--data", ".", "--output", ".", *wrong])
    assert end.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_data_that_is_not_there_is_one_line_and_status_2(tmp_path, capsys):
    code, told = ended(["--data", str(tmp_path / "none"), "--output", str(tmp_path / "out")], capsys)
    assert code == 2
    assert told == (
        f"mnist: {tmp_path}/none: no such folder; download the data with: toolkit data get mnist\n"
    )


def test_a_file_that_is_cut_short_is_one_line_and_status_2(data, tmp_path, capsys):
    images = data / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1])
    code, told = ended(["--data", str(data), "--output", str(tmp_path / "out")], capsys)
    assert (code, told.count("\n")) == (2, 1)
    assert f"mnist: {images}: the file has 4719 bytes, but its header requires 4720 bytes" in told


def test_an_output_folder_that_cannot_be_made_is_one_line_and_status_2(data, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    code, told = ended(["--data", str(data), "--output", str(tmp_path / "file")], capsys)
    assert (code, told.count("\n")) == (2, 1)
    assert "cannot be created" in told


def test_processes_that_do_not_know_of_each_other_are_refused(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    monkeypatch.setenv("SLURM_PROCID", "0")
    code, told = ended(["--data", str(data), "--output", str(tmp_path / "out")], capsys)
    assert code == 2
    assert "2 processes were started, but --strategy single trains in one" in told


@every_row(("strategy", "library"), [("single", "TensorFlow"), ("horovod", "Horovod")])
def test_a_library_that_is_not_installed_is_named_with_status_3(
    data, tmp_path, capsys, strategy, library, monkeypatch
):
    # Simulates a missing library, even if the test environment has the library.
    monkeypatch.setitem(sys.modules, library.lower(), None)
    words = ["--data", str(data), "--output", str(tmp_path / "out"), "--strategy", strategy]
    code, told = ended(words, capsys)
    assert (code, told.count("\n")) == (3, 1)
    assert library in told
