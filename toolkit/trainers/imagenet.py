"""Train image models on ImageNet or on your own images: ``python -m toolkit.trainers.imagenet``.

The folder of ``--data`` contains TFRecord files with ImageNet's usual names
(:mod:`toolkit.trainers.data.records`), or one folder of images per class
(:mod:`toolkit.trainers.data.folder`).
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

from toolkit.trainers.command import run
from toolkit.trainers.data import folder, records
from toolkit.trainers.data.sources import Data
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.models.applications import application
from toolkit.trainers.ranks.tuning import LARGE
from toolkit.trainers.trainer import Trainer
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.words import count

CLASSES = 1000
SIDE = 224


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", default="ResNet50", metavar="NAME", help="a model of keras.applications")
    add("--image-size", type=count, default=SIDE, metavar="PIXELS", help="width and height of the images")
    add(
        "--classes",
        type=count,
        default=CLASSES,
        metavar="N",
        help="number of classes; only for TFRecord files",
    )


def configured(trainer: Trainer, options: argparse.Namespace) -> Trainer:
    name, side = options.model, options.image_size
    folders = _classes(options.data)
    classes = folders or options.classes
    if options.classes not in (CLASSES, classes):
        raise Trouble(
            f"--classes: only for TFRecord files, but {options.data} has folders for {folders} classes; "
            "leave out the option"
        )
    return replace(
        trainer,
        model=partial(application, name, (side, side, 3), classes, side=side),
        load=partial(load, side=side, seed=options.seed, classes=classes),
        variant={"model": name, "image_size": side, "classes": classes},
    )


def check(data: Path) -> None:
    """Check the data set in the folder ``data`` before the training. The folder contains TFRecord files or
    class folders.

    Raises:
        Trouble: if a file or folder is missing, unreadable or wrong; the message names the file or folder.
    """
    _form(data).check(data)


def load(data: Path, side: int = SIDE, seed: int = 1, classes: int = CLASSES) -> tuple[Data, Data]:
    """Return the training and test images, cropped to ``side`` x ``side`` pixels. ``classes`` is the number
    of classes. If ``data`` has class folders, ``classes`` has no effect.
    """
    if _form(data) is folder:
        return folder.load(data, side, seed)
    return records.load(data, side, seed, classes=classes)


def _form(data: Path) -> ModuleType:
    return folder if (data / folder.TRAIN).is_dir() else records


def _classes(data: Path) -> int:
    """Return the number of class folders in a data set. Return 0 if the data set has no class folders or is
    unreadable.
    """
    try:
        return sum(path.is_dir() and path.name[0] != "." for path in (data / folder.TRAIN).iterdir())
    except OSError:
        return 0


TRAINER = Trainer(
    "imagenet",
    partial(application, "ResNet50", (SIDE, SIDE, 3), CLASSES, side=SIDE),
    load,
    data="images",
    fetched=False,
    check=check,
    epochs=90,
    batch_size=32,
    learning=Learning(learning_rate=0.001),
    tuning=LARGE,
    add_options=add_options,
    configured=configured,
)

if __name__ == "__main__":
    run(TRAINER)
