"""Define a trainer with 20 steps on 640 images of noise; all ranks together make one pass."""

import os

import numpy as np

from toolkit.trainers.command import run
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.trainer import Trainer


def images(count, seed):
    random = np.random.default_rng(seed)
    classes = random.integers(0, 4, count)
    pixels = random.integers(0, 256, (count, 12, 12, 1)) // 2 + 40 * classes[:, None, None, None]
    return Samples(pixels.astype("uint8"), classes)


def load(_):
    if os.environ.get("FAIL_ON") == os.environ.get("SLURM_PROCID", "0"):
        raise RuntimeError("a fault of this rank")
    return images(int(os.environ.get("IMAGES", "640")), 1), images(100, 2)


def model():
    import tensorflow as tf

    layers = tf.keras.layers
    # A small momentum is needed: the mean of the devices' biased moving averages differs from one device's
    # average.
    normal = [layers.BatchNormalization(momentum=0.8)] * bool(os.environ.get("NORMAL"))
    return tf.keras.Sequential(
        [
            layers.Input((12, 12, 1)),
            layers.Rescaling(1 / 255),
            layers.Conv2D(8, 3, activation="relu"),
            *normal,
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(4),
        ]
    )


TRAINER = Trainer(
    "small", model, load, epochs=1, batch_size=32, learning=Learning(learning_rate=0.05, optimizer="sgd")
)

if __name__ == "__main__":
    run(TRAINER)
