"""Time steps with and without a feature in turns, and print a JSON line for each case; runs in the training
image.

For XLA, the program measures the CPU time of this process on one core, which other processes disturb
least. For dropout, pooling and biases, the program measures wall-clock time on all cores, because threads
wait for each other.

Usage: turns.py DATA xla|dropout|pooling|biases ROUNDS
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from toolkit.trainers import imagenet_synthetic, mnist, mnist_cnn
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning import build
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.training.loop import Loop
from toolkit.trainers.training.trial import Alone

CASES = {
    "xla": (("dense", mnist, 32, 300), ("dense", mnist, 256, 60), ("convolutions", mnist_cnn, 32, 20)),
    "dropout": (("convolutions", mnist_cnn, 32, 60), ("convolutions", mnist_cnn, 128, 15)),
    "pooling": (("convolutions", mnist_cnn, 32, 60), ("convolutions", mnist_cnn, 128, 15)),
    "biases": (("ResNet50", imagenet_synthetic, 8, 1),),
}
LEFT_OUT = {"dropout": "draw_bits", "pooling": "pool_first", "biases": "spare_biases"}
"""The function of toolkit that applies each feature. The loop ``without`` replaces it by a mock."""


def loops(what, module, data, batch):
    """Return two loops that differ only in the compared feature: ``without`` and ``with``."""

    def loop(xla="off"):
        learning = Learning(0.001, xla=xla)
        return Loop(module.TRAINER.model, data, Alone(), learning, batch=batch, epochs=1, seed=1)

    if what == "xla":
        return {"without": loop(), "with": loop("on")}
    with mock.patch.object(build, LEFT_OUT[what]):
        keras = loop()
    return {"without": keras, "with": loop()}


def main() -> None:
    clock = time.perf_counter
    if sys.argv[2] == "xla":
        clock = time.process_time
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    digits, _ = mnist.load(Path(sys.argv[1]))
    digits = Samples(digits.inputs[:20_000], digits.classes[:20_000])
    for name, module, batch, steps in CASES[sys.argv[2]]:
        data = imagenet_synthetic.load(Path())[0] if module is imagenet_synthetic else digits
        both = loops(sys.argv[2], module, data, batch)
        speeds = {name: [] for name in both}
        for loop in both.values():
            loop.timed(steps)
        for _ in range(int(sys.argv[3])):
            for key, loop in both.items():
                begun = clock()
                loop.timed(steps)
                speeds[key].append(steps * batch / (clock() - begun))
        ratios = [one / other for one, other in zip(speeds["with"], speeds["without"], strict=True)]
        medians = {key: statistics.median(found) for key, found in speeds.items()}
        print(json.dumps({"model": name, "batch": batch, **medians, "ratios": ratios}), flush=True)


main()
