"""TensorFlow strategy ``hybrid``: each rank trains on several devices, and Horovod averages gradients between
ranks.
"""

from typing import TYPE_CHECKING, Any

from toolkit.trainers.kinds import Step
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.strategies.horovod import Horovod
from toolkit.trainers.strategies.mirrored import Replicas, mirror

if TYPE_CHECKING:
    import tensorflow as tf


class Hybrid(Horovod, Replicas):
    """A Horovod rank with a copy of the model on each of its devices. The rank sends each gradient once, as
    the sum over its devices.
    """

    def __init__(self, spread: RankSpread = PLAIN) -> None:
        super().__init__(spread)
        self.requested_devices = spread.devices

    def begin(self) -> None:
        self.strategy = mirror()
        self.devices = self.strategy.num_replicas_in_sync

    def step(self, step: Step, inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        return Replicas.step(self, step, inputs, classes)

    def distribute(
        self, optimizer: "tf.keras.optimizers.Optimizer", compression: str = "none"
    ) -> "tf.keras.optimizers.Optimizer":
        # Do not use the optimizer of horovod.tensorflow.keras, which does not accept tensors in a graph.
        from horovod.tensorflow import allreduce

        return between(optimizer, allreduce)


def between(optimizer: Any, allreduce: Any) -> Any:  # noqa: ANN401 - the optimizer gets a class made below
    """Change an optimizer so that it adds the gradients of a rank's devices, and averages the sums over all
    ranks with ``allreduce``.

    Return the optimizer. Each rank calls ``allreduce`` once for each gradient, on the sum over the rank's
    devices.
    """
    base = type(optimizer)

    def _aggregate_gradients(_: Any, pairs: Any) -> Any:  # noqa: ANN401
        def reduce(strategy: Any, gradients: Any) -> Any:  # noqa: ANN401
            sums = [total(strategy, gradient) for gradient in gradients]
            return [allreduce(one, name=f"gradient_{number}") for number, one in enumerate(sums)]

        import tensorflow as tf

        gradients, variables = zip(*pairs, strict=True)
        means = tf.distribute.get_replica_context().merge_call(reduce, args=(list(gradients),))
        return list(zip(means, variables, strict=True))

    optimizer.__class__ = type(base.__name__, (base,), {"_aggregate_gradients": _aggregate_gradients})
    return optimizer


def total(strategy: Any, gradient: Any) -> Any:  # noqa: ANN401
    """Return the sum of a gradient over the rank's devices. The sum is in the memory of the first device,
    from which NCCL can send the sum.

    TensorFlow's ``strategy.reduce`` would store the sum in the host's memory instead.
    """
    import tensorflow as tf

    first = strategy.experimental_local_results(gradient)[0]
    reduced = strategy.extended.reduce_to(tf.distribute.ReduceOp.SUM, gradient, destinations=first)
    return strategy.experimental_local_results(reduced)[0]
