"""TensorFlow strategy ``mirrored``: one process trains copies of the model on all devices of a node."""

import contextlib
import os
from typing import TYPE_CHECKING, Any

from toolkit.trainers.kinds import Step
from toolkit.trainers.ranks.launcher import started_size
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.ranks.world import World, complain_once

if TYPE_CHECKING:
    import tensorflow as tf


class Replicas(World):
    """A rank that computes with a strategy of ``tf.distribute``.

    The optimizers of ``tf.distribute`` add the gradients of all devices, so each device divides its loss by
    the number of devices.
    """

    strategy: "tf.distribute.Strategy"

    @property
    def summed(self) -> int:
        count: int = self.strategy.num_replicas_in_sync
        return count

    def scope(self) -> "contextlib.AbstractContextManager[Any]":
        scope: contextlib.AbstractContextManager[Any] = self.strategy.scope()
        return scope

    def share_moments(self, layer: "tf.keras.layers.BatchNormalization") -> None:
        layer.synchronized = True

    def step(self, step: Step, inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        import tensorflow as tf

        own = self.devices

        def one() -> "tuple[tf.Tensor, tf.Tensor]":
            # TensorFlow numbers the devices of rank 0 first, then the devices of rank 1, and so on.
            number = tf.distribute.get_replica_context().replica_id_in_sync_group % own
            return step(*part(number, own, inputs, classes))

        each = self.strategy.run(one) if own > 1 else self.strategy.run(step, (inputs, classes))
        loss, right = (tf.add_n(self.strategy.experimental_local_results(value)) for value in each)
        return loss, right


class Mirrored(Replicas):
    """The only rank of a training, which trains on all devices that TensorFlow lists."""

    rank = local_rank = 0
    size = local_size = nodes = 1

    def __init__(self, spread: RankSpread = PLAIN) -> None:
        self.versions = {}
        self.requested_devices = spread.devices
        if started_size(os.environ) > 1:
            complain_once(
                f"{started_size(os.environ)} processes were started, but --strategy mirrored trains in "
                "one process, on all GPUs of its node; start one process, or use --strategy hybrid or "
                "multiworker with one process on each node"
            )

    def begin(self) -> None:
        self.strategy = mirror()
        self.devices = self.strategy.num_replicas_in_sync


def mirror() -> "tf.distribute.MirroredStrategy":
    """Return TensorFlow's ``MirroredStrategy`` for this process's GPUs. If the process has no GPUs, return
    the strategy for its logical CPU devices.
    """
    import tensorflow as tf

    for kind in ("GPU", "CPU"):
        names = [one.name for one in tf.config.list_logical_devices(kind)]
        if names:
            break
    return tf.distribute.MirroredStrategy(names)


def part(
    number: "tf.Tensor", devices: int, inputs: "tf.Tensor", classes: "tf.Tensor"
) -> "tuple[tf.Tensor, tf.Tensor]":
    """Divide a rank's batch among its ``devices`` devices, and return the samples of device ``number``. The
    first devices may get one sample more than the other devices.
    """
    import tensorflow as tf

    each, more = tf.shape(classes)[0] // devices, tf.shape(classes)[0] % devices
    start = number * each + tf.minimum(number, more)
    stop = start + each + tf.cast(number < more, tf.int32)
    return inputs[start:stop], classes[start:stop]
