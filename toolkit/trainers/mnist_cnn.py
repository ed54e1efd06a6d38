"""Train convolutional networks on MNIST: ``python -m toolkit.trainers.mnist_cnn``.

``--model classic`` has two convolutions of 3 x 3. Early examples of Keras and the course of the Jülich
Supercomputing Centre (``docs/courses/julich.md``) train this network for 12 epochs. ``--model tutorial`` is
the network of TensorFlow's tutorial, with two convolutions of 5 x 5, each followed by max-pooling.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from toolkit.trainers.command import run
from toolkit.trainers.kinds import FrameworkName
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.mnist import CLASSES, SIDE, check, load
from toolkit.trainers.models import jaxnetworks, networks, torchnetworks
from toolkit.trainers.trainer import Network, Trainer

MODELS = {"classic": networks.two_convolutions, "tutorial": networks.five_by_five}
TORCH_MODELS = {"classic": torchnetworks.two_convolutions, "tutorial": torchnetworks.five_by_five}
JAX_MODELS = {"classic": jaxnetworks.two_convolutions, "tutorial": jaxnetworks.five_by_five}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", choices=tuple(MODELS), default="classic", help="network to train")


def configured(trainer: Trainer, options: argparse.Namespace) -> Trainer:
    model = partial(MODELS[options.model], SIDE, CLASSES)
    return replace(trainer, model=model, networks=_networks(options.model), variant={"model": options.model})


def _networks(model: str) -> Mapping[FrameworkName, Network]:
    return {
        "pytorch": Network(partial(TORCH_MODELS[model], SIDE, CLASSES)),
        "jax": Network(partial(JAX_MODELS[model], SIDE, CLASSES)),
    }


TRAINER = Trainer(
    "mnist-cnn",
    partial(networks.two_convolutions, SIDE, CLASSES),
    load,
    data="mnist",
    check=check,
    epochs=12,
    batch_size=128,
    learning=Learning(learning_rate=0.001),
    networks=_networks("classic"),
    add_options=add_options,
    configured=configured,
)

if __name__ == "__main__":
    run(TRAINER)
