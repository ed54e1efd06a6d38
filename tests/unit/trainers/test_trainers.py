"""Test the trainers' options and their effect."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from tests.unit.tables import every_row
from toolkit.trainers import cifar10, command, imagenet, imagenet_synthetic, mnist_cnn
from toolkit.trainers.command import parse, run
from toolkit.trainers.data.augment import mirrored_and_moved
from toolkit.trainers.training import heading
from toolkit.trainers.training.benchmark import Speed
from toolkit.trainers.trouble import Trouble


def made(trainer, *words, data="/data"):
    given = ("--data", data) if trainer.data else ()
    return parse(trainer, [*given, "--output", "/out", *words])[0]


def test_the_network_of_mnist_cnn_is_chosen_by_name():
    assert made(mnist_cnn.TRAINER).variant == {"model": "classic"}
    chosen = made(mnist_cnn.TRAINER, "--model", "tutorial")
    assert chosen.variant == {"model": "tutorial"}
    assert chosen.model.func is mnist_cnn.MODELS["tutorial"]


def test_cifar10_takes_small_networks_by_their_depth_and_others_by_their_name():
    small = made(cifar10.TRAINER, "--model", "resnet20")
    assert (small.model.keywords, small.augment) == ({"depth": 20}, mirrored_and_moved)
    large = made(cifar10.TRAINER, "--model", "ResNet50V2", "--image-size", "128", "--no-augment")
    assert large.variant == {"model": "ResNet50V2", "image_size": 128, "augment": False}
    assert (large.model.keywords, large.augment) == ({"side": 128}, None)


@every_row("depth", ["resnet7", "resnet10", "resnet2"])
def test_a_depth_that_no_small_network_has_is_refused(depth, capsys):
    with pytest.raises(SystemExit) as end:
        made(cifar10.TRAINER, "--model", depth)
    assert end.value.code == 2
    assert f"{depth}: the number of layers must be 6 n + 2" in capsys.readouterr().err


def test_the_classes_of_imagenet_are_the_folders_or_what_is_said(tmp_path):
    assert made(imagenet.TRAINER, data=str(tmp_path)).variant["classes"] == 1000
    assert made(imagenet.TRAINER, "--classes", "10", data=str(tmp_path)).variant["classes"] == 10
    for name in ("cat", "dog", ".hidden"):
        (tmp_path / "train" / name).mkdir(parents=True)
    assert made(imagenet.TRAINER, data=str(tmp_path)).variant["classes"] == 2


def test_data_of_no_form_is_one_line_and_status_2(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        run(imagenet.TRAINER, ["--data", str(tmp_path), "--output", str(tmp_path / "out")])
    told = capsys.readouterr().err
    assert (end.value.code, told.count("\n")) == (2, 1)
    assert str(tmp_path) in told


def test_images_that_are_not_there_are_one_line_that_names_no_set(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(imagenet.TRAINER, ["--data", str(tmp_path / "none"), "--output", str(tmp_path / "out")])
    assert capsys.readouterr().err == f"imagenet: {tmp_path}/none: no such folder\n"


def test_a_benchmark_needs_no_data_and_takes_its_protocol():
    chosen = made(imagenet_synthetic.TRAINER, "--steps", "3", "--warm-up", "1", "--iterations", "2")
    (protocol,) = chosen.run.args
    assert (protocol.warm_up, protocol.steps, protocol.iterations) == (1, 3, 2)


def test_speed_is_the_median_with_its_spread_in_total_and_each():
    speed = Speed.of([90.0, 100.0, 140.0])
    assert (speed.median, speed.least, speed.most) == (100.0, 90.0, 140.0)
    assert speed.sentence(1) == "100.0 images/s (± 26.5; 90.0 to 140.0)"
    assert speed.sentence(4).endswith(", 25.0 on each of 4 devices")
    assert Speed.of([7.0]).deviation == 0


@every_row(("gpus", "cycle"), [([], "5"), (["nvidia0"], None)])
def test_large_models_have_messages_of_their_own_on_processors_only(gpus, cycle, tmp_path, monkeypatch):
    for name in gpus:
        (tmp_path / name).touch()
    told = []

    def started(*_):
        told.append(dict(os.environ))
        raise Trouble("far enough")

    for name in ("HOROVOD_CYCLE_TIME", "HOROVOD_FUSION_THRESHOLD", "HOROVOD_AUTOTUNE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(command, "DEVICES", tmp_path)
    monkeypatch.setattr(command, "open_world", started)
    with pytest.raises(SystemExit):
        run(imagenet_synthetic.TRAINER, ["--strategy", "horovod", "--output", str(tmp_path)])
    assert told[0].get("HOROVOD_CYCLE_TIME") == cycle


def test_epochs_that_ranks_share_are_said():
    assert heading.tell_epochs(2, 2) == ""
    assert heading.tell_epochs(4, 2) == "; 2 epochs per device: --epochs 4 is the total of all devices"


def test_the_example_with_data_takes_data_and_checks_it(tmp_path):
    path = Path(__file__).parents[3] / "docs" / "examples" / "arrays.py"
    spec = importlib.util.spec_from_file_location("arrays", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, options = parse(module.TRAINER, ["--data", str(tmp_path), "--output", "o"])
    assert options.data == tmp_path
    with pytest.raises(Trouble, match="no file data"):
        module.check(tmp_path)
    np.savez(tmp_path / "data.npz", x=np.zeros((20, 28, 28)), y=np.arange(20) % 10)
    train, test = module.load(tmp_path)
    assert (len(train), len(test)) == (18, 2)
