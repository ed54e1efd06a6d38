"""A trainer in PyTorch: toolkit launch docs/examples/spirals_torch.py --image torch.sif --nodes 2"""

from dataclasses import replace
from functools import partial

import numpy as np

from toolkit.trainers.command import run
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.trainer import Network, Trainer


def load(_, noise=0.1):
    """Return computed points for the training and for the test; other trainers read samples from files."""
    return spirals(6000, noise, seed=1), spirals(1500, noise, seed=2)


def spirals(count, noise, seed):
    random = np.random.default_rng(seed)
    classes = random.integers(0, 3, count)
    radius = random.uniform(0, 1, count)
    angle = 5 * radius + classes * 2 * np.pi / 3 + random.normal(0, noise, count)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return Samples(points.astype(np.float32), classes)


def model():
    from torch import nn

    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))


def add_options(parser):
    parser.add_argument("--noise", type=float, default=0.1, help="how far points lie from their spiral")


def configured(trainer, options):
    return replace(trainer, load=partial(load, noise=options.noise), variant={"noise": options.noise})


TRAINER = Trainer(
    "spirals",
    None,
    load,
    networks={"pytorch": Network(model)},
    epochs=10,
    batch_size=50,
    learning=Learning(learning_rate=0.01),
    add_options=add_options,
    configured=configured,
)

if __name__ == "__main__":
    run(TRAINER)
