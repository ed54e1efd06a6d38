"""TensorFlow strategy ``multiworker``: TensorFlow's collectives average gradients over gRPC or NCCL."""

import json
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolkit.trainers.kinds import Step
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.strategies.mirrored import Replicas
from toolkit.trainers.strategies.tcp_world import TcpWorld

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf


class MultiWorker(TcpWorld, Replicas):
    """A rank of ``MultiWorkerMirroredStrategy``. If a node has only one rank, this rank uses all GPUs of the
    node.
    """

    requested_devices = 0

    def __init__(self, _: RankSpread = PLAIN) -> None:
        super().__init__("multiworker")

    def begin(self) -> None:
        own = reserve()
        ports = [int(port) for port in self.group.gather(str(own.getsockname()[1]).encode())]
        workers = [f"{one.address}:{port}" for one, port in zip(self.members, ports, strict=True)]
        os.environ["TF_CONFIG"] = json.dumps(
            {"cluster": {"worker": workers}, "task": {"type": "worker", "index": self.rank}}
        )
        import tensorflow as tf

        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        own.close()
        self.devices = self.strategy.num_replicas_in_sync // self.size

    def step(self, step: Step, inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        return Replicas.step(self, step, inputs, classes)

    def compile_score(self, score: Step) -> Callable[..., Any]:
        import tensorflow as tf

        # Run ``score`` in a replica. Outside a replica, TensorFlow would collect the moving averages of batch
        # normalisation from all ranks.
        def one(inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
            loss, right = self.strategy.run(score, (inputs, classes))
            local = self.strategy.experimental_local_results
            return local(loss)[0], local(right)[0]

        compiled: Callable[..., Any] = tf.function(one, reduce_retracing=True)
        return compiled

    def value(self, variable: "tf.Variable") -> "numpy.ndarray":
        # Read only this rank's value. For moving averages, TensorFlow's own method returns the mean over all
        # ranks, which needs messages from all ranks.
        return own_value(variable)

    def put(self, variable: "tf.Variable", value: "numpy.ndarray") -> None:
        for one in getattr(variable, "values", (variable,)):
            one.assign(value)


def own_value(variable: "tf.Variable") -> "numpy.ndarray":
    """Return a variable's value on the first device of this rank."""
    value: numpy.ndarray = getattr(variable, "values", (variable,))[0].numpy()
    return value


def reserve() -> socket.socket:
    """Return a socket that is bound to a free port, so that no other program takes the port before
    TensorFlow's server opens the port.
    """
    # With TF_GRPC_REUSE_PORT and SO_REUSEPORT, two sockets can use the same port.
    # Connections reach TensorFlow's socket, because only TensorFlow's socket listens.
    os.environ["TF_GRPC_REUSE_PORT"] = "1"
    own = socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    own.bind(("", 0))
    return own
