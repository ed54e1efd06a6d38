"""A trainer that reads ``x`` (samples of 28 x 28 numbers) and ``y`` (classes) from ``DIR/data.npz``.

The last tenth of the samples is for the test. To launch the trainer:

toolkit launch docs/examples/arrays.py --data DIR --nodes 2 -- --epochs 5
"""

import numpy as np

from toolkit.trainers.command import run
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.trainer import Trainer
from toolkit.trainers.trouble import Trouble


def check(folder):
    if not (folder / "data.npz").is_file():
        raise Trouble(f"{folder}: it has no file data.npz with the arrays x and y")


def load(folder):
    with np.load(folder / "data.npz") as arrays:
        x, y = arrays["x"], arrays["y"]
    cut = len(x) - len(x) // 10
    return Samples(x[:cut], y[:cut]), Samples(x[cut:], y[cut:])


def model():
    from tensorflow.keras import Sequential, layers

    return Sequential([layers.Input((28, 28)), layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(10)])


TRAINER = Trainer(
    "arrays",
    model,
    load,
    epochs=5,
    batch_size=32,
    learning=Learning(learning_rate=0.01),  # required: the learning rate of one rank
    data="arrays",  # required for --data: the name of the data set
    fetched=False,  # `toolkit data get` cannot download this data set
    check=check,
)

if __name__ == "__main__":
    run(TRAINER)
