"""Show an example of model parallelism: ``python -m toolkit.trainers.pipeline --data DIR``.

The program splits the layers of a network over two devices, as for a model that is too large for one device.
Without micro-batches, the second device is idle while the first device computes. With micro-batches, the
second device processes one micro-batch while the first device processes the next, as in GPipe (Huang et al.
2019, arXiv:1811.06965). The program sums the gradients of all micro-batches before the update, so the result
is the same as on one device, up to rounding. ``--compare`` trains again on one device and prints the largest
difference between the losses.

Without GPUs, the program uses two logical devices of the same CPU. Training on these two devices is not
faster than on one device, but shows how pipelining works.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.trainers import mnist
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.quiet import import_tensorflow
from toolkit.trainers.trouble import Trouble
from toolkit.trainers.words import count, positive

if TYPE_CHECKING:
    import tensorflow as tf


class Pipeline:
    """A network whose layers form several stages. Each stage runs on a different device."""

    def __init__(self, stages: "Sequence[tf.keras.Model]", devices: Sequence[str], pieces: int) -> None:
        """Store the stages, the device of each stage, and the number of micro-batches (``pieces``)."""
        self.stages, self._devices, self._pieces = stages, devices, pieces

    @property
    def variables(self) -> "list[tf.Variable]":
        """Return the trainable variables of all stages."""
        return [variable for stage in self.stages for variable in stage.trainable_variables]

    def gradients(self, inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, list[tf.Tensor]]":
        """Return the mean loss of a batch and the gradients of this loss. Call this method in a
        ``tf.function``.

        TensorFlow starts a stage as soon as the inputs of the stage are ready. Two stages can process
        different micro-batches at the same time, in the forward and the backward pass.
        """
        import tensorflow as tf

        total, sums = tf.constant(0.0), [tf.zeros_like(one) for one in self.variables]
        samples = tf.shape(classes)[0]
        for piece in range(self._pieces):
            start, stop = piece * samples // self._pieces, (piece + 1) * samples // self._pieces
            with tf.GradientTape() as tape:
                values = inputs[start:stop]
                for stage, device in zip(self.stages, self._devices, strict=True):
                    with tf.device(device):
                        values = stage(values, training=True)
                with tf.device(self._devices[-1]):
                    each = tf.nn.sparse_softmax_cross_entropy_with_logits(classes[start:stop], values)
                    loss = tf.reduce_sum(each) / tf.cast(samples, tf.float32)
            total += loss
            sums = [one + more for one, more in zip(sums, tape.gradient(loss, self.variables), strict=True)]
        return total, sums


def train(
    devices: Sequence[str], samples: Samples, *, pieces: int, batch: int, steps: int, rate: float
) -> tuple[list[float], float]:
    """Train a dense network that has two stages, one on each device. Return the loss of each step, and the
    total time in seconds of all steps except the first step.

    ``pieces`` is the number of micro-batches in a batch, and ``rate`` is the learning rate.
    """
    import numpy as np
    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    layers, stages = tf.keras.layers, []
    shapes: list[tuple[int, ...]] = [(mnist.SIDE, mnist.SIDE), (512,)]
    parts = [
        [layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(512, activation="relu")],
        [layers.Dense(512, activation="relu"), layers.Dense(mnist.CLASSES)],
    ]
    for device, shape, part in zip(devices, shapes, parts, strict=True):
        with tf.device(device):
            stages.append(tf.keras.Sequential([layers.Input(shape), *part]))
    pipeline = Pipeline(stages, devices, pieces)

    def update(inputs: "tf.Tensor", classes: "tf.Tensor") -> "tf.Tensor":
        loss, gradients = pipeline.gradients(inputs, classes)
        for variable, gradient in zip(pipeline.variables, gradients, strict=True):
            variable.assign_sub(rate * gradient)
        return loss

    step: Any = tf.function(update, reduce_retracing=True)
    order = np.random.default_rng(1).permutation(len(samples))
    losses, begun = [], 0.0
    for number in range(steps):
        rows = order[np.arange(number * batch, (number + 1) * batch) % len(order)]
        losses.append(float(step(samples.inputs[rows], samples.classes[rows].astype("int32"))))
        begun = begun or time.monotonic()
    return losses, time.monotonic() - begun


def two_devices() -> list[str]:
    """Return TensorFlow's names of two GPUs or, without GPUs, of two logical CPU devices. Raise ``Trouble``
    if there is only one GPU.
    """
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) == 1:
        raise Trouble(
            "two stages need two GPUs, but this node has one; to use the CPU instead, set "
            "CUDA_VISIBLE_DEVICES=-1"
        )
    if not gpus:
        (cpu,) = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, parts)
    return [one.name for one in tf.config.list_logical_devices("GPU" if gpus else "CPU")[:2]]


def main(words: list[str] | None = None) -> int:
    """Train with the options in ``words``, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m toolkit.trainers.pipeline",
        description="Train a network whose layers are on two devices.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder with MNIST's files")
    parser.add_argument("--steps", type=count, default=100)
    parser.add_argument("--batch-size", type=count, default=256, help="samples per step")
    parser.add_argument("--micro-batches", type=count, default=4, help="number of micro-batches in a batch")
    parser.add_argument("--learning-rate", type=positive, default=0.1)
    parser.add_argument("--compare", action="store_true", help="train again on one device; compare losses")
    options = parser.parse_args(words)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import_tensorflow()
    try:
        mnist.check(options.data)
        devices = two_devices()
        samples, _ = mnist.load(options.data)
    except (Trouble, OSError) as error:
        print(f"pipeline: {error}", file=sys.stderr)
        return 2
    size, rate = options.batch_size, options.learning_rate
    runs = [(devices, options.micro_batches), *[([devices[0]] * 2, 1)] * options.compare]
    found = []
    for where, pieces in runs:
        losses, seconds = train(where, samples, pieces=pieces, batch=size, steps=options.steps, rate=rate)
        found.append(losses)
        speed = (options.steps - 1) * size / max(seconds, 1e-9)
        print(
            f"{len(set(where))} device{'s' * (len(set(where)) > 1)}, "
            f"{pieces} micro-batch{'es' * (pieces > 1)}: "
            f"loss {losses[0]:.6f} in the first step, {losses[-1]:.6f} in the last step, "
            f"{speed:,.0f} images/s",
            flush=True,
        )
    if options.compare:
        apart = max(abs(one - other) for one, other in zip(*found, strict=True))
        print(f"the losses differ by at most {apart:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
