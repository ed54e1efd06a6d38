"""TensorFlow strategy ``ps``: workers exchange parameters and gradients with parameter servers over gRPC."""

import itertools
import json
import logging
import os
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from toolkit.trainers.kinds import Step
from toolkit.trainers.ranks.roles import Role, cluster, roles
from toolkit.trainers.ranks.spread import PLAIN, RankSpread
from toolkit.trainers.strategies.multiworker import reserve
from toolkit.trainers.strategies.resident import Resident
from toolkit.trainers.strategies.tcp_world import TcpWorld
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import contextlib

    import numpy
    import tensorflow as tf

    from toolkit.trainers.data.sources import Data
    from toolkit.trainers.kinds import Steer

T = TypeVar("T")

_PIECES = 8
"""Each call of the training function makes several steps. In asynchronous training, the coordinator divides
these steps into at most this number of parts. Each part has as many tasks as there are workers. A worker that
has finished a task takes the next task, so a fast worker can compute more tasks than a slow worker.
"""


class ParameterServers(TcpWorld):
    """The ranks of a training with parameter servers. Rank 0 is the coordinator. The other ranks stay in
    :meth:`begin` as servers or workers until rank 0 exits.
    """

    alone = False

    def __init__(self, spread: RankSpread = PLAIN) -> None:
        super().__init__("ps")
        self._spread = spread
        self._serving = False
        self._accumulated: list[tuple[tf.Variable, tf.Variable]] = []
        self._steer: Steer | None = None
        # Hide all GPUs, because toolkit's developers have not tested which GPU each worker would use.
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        try:
            self._roles = roles(self.size, spread.servers)
        except Trouble as trouble:
            self.refuse(trouble)

    def begin(self) -> None:
        own = reserve()
        ports = [int(port) for port in self.group.gather(str(own.getsockname()[1]).encode())]
        addresses = [f"{one.address}:{port}" for one, port in zip(self.members, ports, strict=True)]
        described, role = cluster(self._roles, addresses), self._roles[self.rank]
        os.environ["TF_CONFIG"] = json.dumps(
            {"cluster": described, "task": {"type": role.kind, "index": role.number}}
        )
        if self.rank:
            self._serve(described, role)
        self.group.gather(b"")
        import tensorflow as tf

        # Hide TensorFlow's warning that functions may run on the coordinator. TensorFlow only traces the
        # functions on the coordinator, and then sends the functions to workers.
        logging.getLogger("tensorflow").addFilter(
            lambda one: "ClusterCoordinator.schedule" not in str(one.msg)
        )
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        self.strategy = tf.distribute.ParameterServerStrategy(resolver)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)
        own.close()
        self._serving = True
        # From here on, the coordinator (rank 0) treats the workers as its devices.
        self.size = self.local_size = 1
        self.devices = len(described["worker"])

    def _serve(self, cluster: dict[str, list[str]], role: Role) -> NoReturn:
        import tensorflow as tf

        # Ignore signals that request a stop. The coordinator gets the same signals, and stops this rank.
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        # Use more threads than the job has ranks, so that workers that wait for each other cannot block all
        # threads of this server.
        config = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=tf.config.threading.get_intra_op_parallelism_threads(),
            inter_op_parallelism_threads=self.size + 1,
        )
        server = tf.distribute.Server(
            cluster, role.kind, role.number, protocol="grpc", config=config, start=True
        )
        self.group.gather(b"")
        code = self.group.broadcast(b"")[0]
        del server
        os._exit(code)

    @property
    def averaged(self) -> int:
        # Without --sync, the gradients of each worker cause a separate update of the model.
        # With --sync, the gradients of all workers together cause one update of the model.
        return self.width if self._spread.sync else 1

    def scope(self) -> "contextlib.AbstractContextManager[Any]":
        scope: contextlib.AbstractContextManager[Any] = self.strategy.scope()
        return scope

    def feed(self, data: "Data") -> Resident:
        return Resident(data, self._coordinator)

    def distribute(
        self, optimizer: "tf.keras.optimizers.Optimizer", compression: str = "none"
    ) -> "tf.keras.optimizers.Optimizer":
        if self._spread.sync:
            self._optimizer, self._plain, self._accumulated = optimizer, type(optimizer), []
            accumulate = {"apply_gradients": lambda _, pairs, **__: self._accumulate(pairs)}
            optimizer.__class__ = type(self._plain.__name__, (self._plain,), accumulate)
        return optimizer

    def steered(self, steer: "Steer | None", optimizer: "tf.keras.optimizers.Optimizer") -> "Steer | None":
        if not self._spread.sync:
            return steer
        # Each change of the learning rate also rescales the optimizer's velocity, so update() sets the rate
        # once per step, instead of once per worker.
        self._steer = steer
        return None

    def _accumulate(self, pairs: Any) -> None:  # noqa: ANN401 - as in Keras
        """Add a worker's gradients to the sums in ``_accumulated``. The sum for each variable of the model is
        on the variable's parameter server.
        """
        import tensorflow as tf

        pairs = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        if not self._accumulated:
            with tf.init_scope():
                self._optimizer._create_all_weights([variable for _, variable in pairs])  # noqa: SLF001
                for _, variable in pairs:
                    with self.strategy.extended.colocate_vars_with(variable):
                        zeros = tf.Variable(tf.zeros(variable.shape, variable.dtype), trainable=False)
                    self._accumulated.append((zeros, variable))
        for (sums, _), (gradient, _) in zip(self._accumulated, pairs, strict=True):
            sums.assign_add(tf.convert_to_tensor(gradient) / self.devices)

    def compile(self, train: Callable[..., Any], signature: Sequence[Any], width: int) -> Callable[..., Any]:
        import tensorflow as tf

        work: Any = tf.function(train, input_signature=signature)

        def update(epochs: tf.Tensor) -> None:
            if self._steer is not None:
                self._steer(self._optimizer, epochs)

            def one() -> None:
                pairs = [(sums.read_value(), variable) for sums, variable in self._accumulated]
                self._plain.apply_gradients(self._optimizer, pairs)
                for sums, _ in self._accumulated:
                    sums.assign(tf.zeros_like(sums))

            self.strategy.run(one)

        work.get_concrete_function()
        return self._in_step(work, tf.function(update)) if self._spread.sync else self._on_their_own(work)

    def _in_step(self, work: Callable[..., Any], update: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that makes synchronous training steps. After each step, all workers wait until
        the model has been updated once with the gradients of all workers.
        """
        import tensorflow as tf

        def run(portion: Any, steps: int, epochs: float, step_share: float, loss: float, right: int) -> Any:  # noqa: ANN401
            for step in range(steps):
                jobs = [
                    self._schedule(
                        work,
                        portion.part(step, step + 1, worker, self.devices),
                        epochs + step * step_share,
                        step_share,
                    )
                    for worker in range(self.devices)
                ]
                self._coordinator.join()
                self._coordinator.schedule(
                    update, args=(tf.constant(epochs + step * step_share, tf.float64),)
                )
                self._coordinator.join()
                loss, right = _add_scores(jobs, loss, right)
            return loss, right

        return run

    def _on_their_own(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that makes asynchronous training steps. Each worker updates the model without
        waiting for other workers.
        """

        def run(portion: Any, steps: int, epochs: float, step_share: float, loss: float, right: int) -> Any:  # noqa: ANN401
            cuts = sorted({steps * piece // _PIECES for piece in range(_PIECES + 1)})
            jobs = [
                self._schedule(
                    work,
                    portion.part(start, stop, worker, self.devices),
                    epochs + start * step_share,
                    step_share,
                )
                for start, stop in itertools.pairwise(cuts)
                for worker in range(self.devices)
            ]
            self._coordinator.join()
            return _add_scores(jobs, loss, right)

        return run

    def _schedule(self, work: Callable[..., Any], portion: Any, epochs: float, step_share: float) -> Any:  # noqa: ANN401
        import tensorflow as tf

        rows = portion[-1]
        scalars = (
            tf.constant(len(rows)),
            tf.constant(epochs, tf.float64),
            tf.constant(step_share, tf.float64),
        )
        zeros = (tf.constant(0.0, tf.float64), tf.constant(0))
        return self._coordinator.schedule(work, args=((*portion[:-1], tf.constant(rows)), *scalars, *zeros))

    def step(self, step: Step, inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        loss, right = self.strategy.run(step, (inputs, classes))
        return loss, right

    def value(self, variable: "tf.Variable") -> "numpy.ndarray":
        value: numpy.ndarray = variable.read_value().numpy()
        return value

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        """Do nothing, because the parameter servers have the only copy of the model."""

    def total(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def tell(self, value: T) -> T:
        return value

    def gather(self, value: T) -> list[T]:
        return [value] if self._serving else super().gather(value)

    def leave(self, code: int) -> NoReturn:
        self.group.broadcast(bytes([code]))
        self.group.end()
        os._exit(code)


def _add_scores(jobs: list[Any], loss: float, right: int) -> tuple[float, int]:
    for more, hits in (job.fetch() for job in jobs):
        loss, right = loss + float(more), right + int(hits)
    return loss, right
