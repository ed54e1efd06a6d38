"""A trainer in JAX: toolkit launch docs/examples/spirals_jax.py --image jax.sif --nodes 2"""

from functools import partial
from itertools import pairwise

import numpy as np

from toolkit.trainers.command import run
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.models.jaxlayers import plain
from toolkit.trainers.trainer import Network, Trainer


def load(_):
    """Return computed points for the training and for the test; other trainers read samples from files."""
    return spirals(6000, seed=1), spirals(1500, seed=2)


def spirals(count, seed, noise=0.1):
    random = np.random.default_rng(seed)
    classes = random.integers(0, 3, count)
    radius = random.uniform(0, 1, count)
    angle = 5 * radius + classes * 2 * np.pi / 3 + random.normal(0, noise, count)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return Samples(points.astype(np.float32), classes)


def init(key):
    from jax import nn, numpy, random

    sizes, draw = (2, 64, 64, 3), nn.initializers.glorot_uniform()
    keys = random.split(key, len(sizes) - 1)
    return [(draw(one, size), numpy.zeros(size[1])) for one, size in zip(keys, pairwise(sizes), strict=True)]


def apply(layers, points):
    from jax import nn

    for weights, bias in layers[:-1]:
        points = nn.relu(points @ weights + bias)
    weights, bias = layers[-1]
    return points @ weights + bias


TRAINER = Trainer(
    "spirals",
    None,
    load,
    networks={"jax": Network(partial(plain, init, apply))},
    epochs=10,
    batch_size=50,
    learning=Learning(learning_rate=0.01),
)

if __name__ == "__main__":
    run(TRAINER)
