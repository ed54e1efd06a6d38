"""Inside the training image: steps with and without XLA in turns, a line of JSON for each model and batch.

On one core, by the time that the process had of it, which neighbours on the machine disturb least.

Usage: xla.py DATA ROUNDS
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from toolkit.trainers import mnist, mnist_cnn
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.training.loop import Loop
from toolkit.trainers.training.trial import Alone

CASES = (("dense", mnist, 32, 300), ("dense", mnist, 256, 60), ("convolutions", mnist_cnn, 32, 20))


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    data, _ = mnist.load(Path(sys.argv[1]))
    data = Samples(data.inputs[:20_000], data.classes[:20_000])
    for name, module, batch, steps in CASES:
        loops = {
            xla: Loop(
                module.TRAINER.model, data, Alone(), Learning(0.001, xla=xla), batch=batch, epochs=1, seed=1
            )
            for xla in ("off", "on")
        }
        speeds = {xla: [] for xla in loops}
        for loop in loops.values():
            loop.timed(steps)
        for _ in range(int(sys.argv[2])):
            for xla, loop in loops.items():
                begun = time.process_time()
                loop.timed(steps)
                speeds[xla].append(steps * batch / (time.process_time() - begun))
        ratios = [on / off for on, off in zip(speeds["on"], speeds["off"], strict=True)]
        medians = {xla: statistics.median(found) for xla, found in speeds.items()}
        print(json.dumps({"model": name, "batch": batch, **medians, "ratios": ratios}), flush=True)


main()
