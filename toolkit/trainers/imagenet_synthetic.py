"""Measure how fast ResNet50 trains on random images: ``python -m toolkit.trainers.imagenet_synthetic``.

The images are in memory, so the measured speed includes no time to read or decode files. ``--model`` selects
any image model of ``keras.applications``. ``--image-size`` sets the width and height in pixels; the default
224 is usual for ImageNet.
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from toolkit.trainers.command import run
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.data.synthetic import samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.models.applications import application
from toolkit.trainers.ranks.tuning import LARGE
from toolkit.trainers.trainer import Trainer
from toolkit.trainers.training.benchmark import Protocol, measure
from toolkit.trainers.words import count

CLASSES = 1000
_IMAGES = 128


def load(_: Path, side: int = 224) -> tuple[Samples, Samples]:
    """Return random images of ``side`` x ``side`` pixels with random classes. The training images
    and the test images are the same.
    """
    made = samples((side, side, 3), CLASSES, _IMAGES)
    return made, made


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="ResNet50", metavar="NAME", help="a model of keras.applications")
    parser.add_argument(
        "--image-size", type=count, default=224, metavar="PIXELS", help="width and height of the images"
    )
    Protocol().add_options(parser)


def configured(trainer: Trainer, options: argparse.Namespace) -> Trainer:
    name, side = options.model, options.image_size
    protocol = Protocol(options.warm_up, options.steps, options.iterations)
    return replace(
        trainer,
        model=partial(application, name, (side, side, 3), CLASSES, side=side),
        load=partial(load, side=side),
        variant={"model": name, "image_size": side},
        run=partial(measure, protocol),
    )


TRAINER = Trainer(
    "imagenet-synthetic",
    partial(application, "ResNet50", (224, 224, 3), CLASSES, side=224),
    load,
    epochs=1,
    batch_size=32,
    learning=Learning(learning_rate=0.01),
    tuning=LARGE,
    unused=("--epochs", "--fresh", "--keep", "--checkpoint-seconds", "--log-seconds", "--tensorboard"),
    add_options=add_options,
    configured=configured,
)

if __name__ == "__main__":
    run(TRAINER)
