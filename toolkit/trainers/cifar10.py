"""Residual networks on CIFAR-10: ``python -m toolkit.trainers.cifar10``.

``--model resnet8``, ``--model resnet20`` and so on select the small residual networks that He et al. designed
for CIFAR-10. ``--model`` also accepts the names of the models in ``keras.applications``. The course of BSC
and UPC (``docs/courses/bsc.md``) uses ResNet50V2 and ResNet152V2. For these two models, add ``--image-size
128``, because they need larger images than CIFAR-10 has.

By default, the optimizer is SGD with Nesterov's momentum. The learning rate has a warm-up of one epoch and
then a cosine decay. With the default options, one process trained resnet8 in 12 epochs to a test accuracy of
0.8199.
"""

import argparse
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from toolkit.trainers.command import run
from toolkit.trainers.data import cifar
from toolkit.trainers.data.augment import mirrored_and_moved, moved_in_jax, moved_in_torch
from toolkit.trainers.kinds import FrameworkName
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.models import jaxnetworks, networks, torchnetworks
from toolkit.trainers.models.applications import application
from toolkit.trainers.trainer import Network, Trainer
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.words import count

SHAPE = (cifar.SIDE, cifar.SIDE, cifar.COLOURS)
_SMALL = re.compile(r"resnet(\d+)")


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    named = "resnet8, resnet14 and so on (resnetL with L = 6 n + 2 layers), or a model of keras.applications"
    add("--model", type=_name, default="resnet8", metavar="NAME", help=named)
    add(
        "--image-size",
        type=count,
        default=cifar.SIDE,
        metavar="PIXELS",
        help="resize the images to this width and height, only for models of keras.applications",
    )
    add("--no-augment", action="store_true", help="do not flip and shift the images")


def configured(trainer: Trainer, options: argparse.Namespace) -> Trainer:
    name, side = options.model, options.image_size
    small = _SMALL.fullmatch(name)
    if small and side != cifar.SIDE:
        raise Trouble(
            f"--image-size: only for models of keras.applications; {name} does not resize the images"
        )
    model = (
        partial(networks.residual, SHAPE, cifar.CLASSES, depth=int(small[1]))
        if small
        else partial(application, name, SHAPE, cifar.CLASSES, side=side)
    )
    others = _networks(int(small[1]), augment=not options.no_augment) if small else {}
    variant = {"model": name, **({} if small else {"image_size": side}), "augment": not options.no_augment}
    return replace(
        trainer,
        model=model,
        networks=others,
        variant=variant,
        augment=None if options.no_augment else mirrored_and_moved,
    )


def _networks(depth: int, *, augment: bool) -> Mapping[FrameworkName, Network]:
    """Return the PyTorch and JAX versions of the residual network with ``depth`` layers."""
    in_torch = partial(torchnetworks.residual, cifar.CLASSES, depth=depth)
    in_jax = partial(jaxnetworks.residual, cifar.CLASSES, depth=depth)
    return {
        "pytorch": Network(in_torch, moved_in_torch if augment else None),
        "jax": Network(in_jax, moved_in_jax if augment else None),
    }


def _name(text: str) -> str:
    small = _SMALL.fullmatch(text)
    if small and (int(small[1]) < 8 or int(small[1]) % 6 != 2):
        raise argparse.ArgumentTypeError(
            f"{text}: the number of layers must be 6 n + 2, as in resnet8, resnet14 and resnet20"
        )
    return text


TRAINER = Trainer(
    "cifar10",
    partial(networks.residual, SHAPE, cifar.CLASSES, depth=8),
    cifar.load,
    data="cifar10",
    check=cifar.check,
    epochs=12,
    batch_size=64,
    learning=Learning(
        learning_rate=0.05,
        optimizer="sgd",
        nesterov=True,
        weight_decay=5e-4,
        decay="cosine",
        warmup_epochs=1,
    ),
    augment=mirrored_and_moved,
    networks=_networks(8, augment=True),
    add_options=add_options,
    configured=configured,
)

if __name__ == "__main__":
    run(TRAINER)
