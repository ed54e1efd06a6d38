"""Train MNIST with several sets of options, and print the curves of each as a JSON line; runs in the training
image.

Usage: inside.py DATA RECIPES. RECIPES are JSON objects, one per line, with the fields of Learning, and with
batch, epochs, seeds and name.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from toolkit.trainers import mnist
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.training.checkpoint import EpochPart
from toolkit.trainers.training.loop import Loop
from toolkit.trainers.training.trial import Alone

POINTS = 20
"""Number of points of the loss curve per epoch."""


def main() -> None:
    data, test = mnist.load(Path(sys.argv[1]))
    for line in sys.argv[2].splitlines():
        recipe = json.loads(line)
        for seed in range(1, recipe.pop("seeds", 1) + 1):
            print(json.dumps({**recipe, "seed": seed, **trained(dict(recipe), data, test, seed)}), flush=True)


def trained(recipe, data, test, seed):
    """Train once; return the loss curve, and the test accuracy after each epoch.

    Each point of the curve has the number of epochs done, and the mean loss since the previous point.
    """
    batch, epochs = recipe.pop("batch"), recipe.pop("epochs")
    recipe.pop("name")
    tf.keras.utils.set_random_seed(seed)
    learning = Learning(**recipe)
    loop = Loop(mnist.TRAINER.model, data, Alone(), learning, batch=batch, epochs=epochs, seed=seed)
    steps = max(1, len(data) // batch // POINTS)
    loop._pace = steps
    curve, tests, before = [], [], EpochPart()

    def pause(part, _):
        nonlocal before
        images = part.images - before.images
        curve.append((number + part.images / len(data), (part.loss - before.loss) / images))
        before = part
        return steps

    try:
        for number in range(epochs):
            before = EpochPart()
            loop.epoch(number, 1, EpochPart(), pause)
            tests.append(loop.evaluate(test).accuracy)
    except Exception as error:  # noqa: BLE001 - a training that diverges is a result
        return {"curve": curve, "tests": tests, "error": str(error)}
    return {"curve": curve, "tests": tests}


main()
