"""Provide SGD, Adam, LARS and LAMB, with weight decay for all variables except biases and normalisations.

Keras 2.15 has neither LARS nor LAMB. TensorFlow Addons, which had LAMB, reached its end of life in 2024. The
LARS implementation in the TensorFlow Model Garden needs dozens of packages. This module therefore implements
LARS and LAMB from the publications. All optimizers are Keras's legacy optimizers or their subclasses, because
Horovod supports legacy optimizers. Legacy SGD and Adam are fast: they update each variable with one fused
kernel.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import tensorflow as tf

Name = Literal["adam", "sgd", "lars", "lamb"]
NAMES: tuple[Name, ...] = ("adam", "sgd", "lars", "lamb")


def optimizer(
    name: Name,
    rate: float,
    *,
    momentum: float,
    nesterov: bool,
    decay: float,
    trust: float,
    corrected: bool = False,
) -> "tf.keras.optimizers.Optimizer":
    """Return the optimizer ``name`` with the learning rate ``rate`` and the weight decay ``decay``.

    Only SGD and LARS use ``momentum``, only SGD uses ``nesterov``, and only LARS uses ``trust``, its trust
    coefficient. For SGD with ``nesterov`` and ``corrected``, return an optimizer of the class that
    :func:`corrected_sgd` returns. The caller can then rescale the velocity when the learning rate changes.
    """
    import tensorflow as tf

    legacy = tf.keras.optimizers.legacy
    if name == "lars":
        return lars()(rate, momentum=momentum, weight_decay=decay, trust=trust)
    if name == "lamb":
        return lamb()(rate, weight_decay=decay)
    if name == "sgd":
        if nesterov and corrected:
            return corrected_sgd()(rate, momentum=momentum, nesterov=True, weight_decay=decay)
        if decay:
            return decayed_sgd()(rate, momentum=momentum, nesterov=nesterov, weight_decay=decay)
        return legacy.SGD(rate, momentum=momentum, nesterov=nesterov)
    return decayed_adam()(rate, weight_decay=decay) if decay else legacy.Adam(rate)


def is_spared(variable: "tf.Variable") -> bool:
    """Return whether a variable is a bias or part of a normalisation, and therefore has no weight decay."""
    return len(variable.shape) <= 1


@cache
def decayed_sgd() -> "type[tf.keras.optimizers.Optimizer]":
    """Return a class of SGD that adds the weight decay to the gradient (arXiv:1706.02677, section 3)."""
    import tensorflow as tf

    class DecayedSGD(tf.keras.optimizers.legacy.SGD):  # type: ignore[misc]
        def __init__(self, *args: Any, weight_decay: float = 0.0, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **kwargs)
            self._decay = weight_decay

        def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:  # noqa: ANN401
            if self._decay and not is_spared(var):
                grad += self._decay * var
            return super()._resource_apply_dense(grad, var, apply_state)

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "weight_decay": self._decay}

    return DecayedSGD


@cache
def corrected_sgd() -> "type[tf.keras.optimizers.Optimizer]":
    """Return a class of SGD that multiplies its velocity by ``correction`` before each update.

    To rescale the velocity, set ``correction``, and leave ``momentum`` unchanged. In Nesterov's method,
    ``momentum`` also determines the length of the look-ahead. A change of the learning rate must not change
    this length.
    """
    import tensorflow as tf

    class CorrectedSGD(decayed_sgd()):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **kwargs)
            self._set_hyper("correction", 1.0)

        def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:  # noqa: ANN401
            velocity = self.get_slot(var, "momentum")
            factor = self._get_hyper("correction", var.dtype.base_dtype)
            with tf.control_dependencies([velocity.assign(factor * velocity)]):
                return super()._resource_apply_dense(grad, var, apply_state)

    return CorrectedSGD


@cache
def decayed_adam() -> "type[tf.keras.optimizers.Optimizer]":
    """Return a class of Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101)."""
    import tensorflow as tf

    class DecayedAdam(tf.keras.optimizers.legacy.Adam):  # type: ignore[misc]
        def __init__(self, *args: Any, weight_decay: float = 0.0, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **kwargs)
            self._decay = weight_decay

        def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:  # noqa: ANN401
            if not is_spared(var):
                rate = self._get_hyper("learning_rate", var.dtype.base_dtype)
                with tf.control_dependencies([var.assign_sub(rate * self._decay * var)]):
                    return super()._resource_apply_dense(grad, var, apply_state)
            return super()._resource_apply_dense(grad, var, apply_state)

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "weight_decay": self._decay}

    return DecayedAdam


@cache
def _layerwise() -> "type[tf.keras.optimizers.Optimizer]":
    """Return the base class of LARS and LAMB."""
    import tensorflow as tf

    class Layerwise(tf.keras.optimizers.legacy.Optimizer):  # type: ignore[misc]
        slots: tuple[str, ...] = ()
        options: tuple[str, ...] = ()

        def __init__(self, learning_rate: float, name: str = "", **kwargs: Any) -> None:  # noqa: ANN401
            own = {option: kwargs.pop(option) for option in self.options if option in kwargs}
            super().__init__(name or type(self).__name__, **kwargs)
            self._set_hyper("learning_rate", learning_rate)
            self._own = own

        def _create_slots(self, var_list: Any) -> None:  # noqa: ANN401
            for slot in self.slots:
                for variable in var_list:
                    self.add_slot(variable, slot)

        def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, **_: object) -> Any:  # noqa: ANN401
            # Make the gradient dense, because LARS and LAMB compute the norms of whole variables.
            whole = tf.scatter_nd(indices[:, tf.newaxis], grad, tf.shape(var, out_type=indices.dtype))
            return self._resource_apply_dense(whole, var)

        def get_config(self) -> dict[str, Any]:
            rate = self._serialize_hyperparameter("learning_rate")
            return {**super().get_config(), "learning_rate": rate, **self._own}

    return Layerwise


def _ratio(numerator: "tf.Tensor", denominator: "tf.Tensor") -> "tf.Tensor":
    """Return the trust ratio of LARS or LAMB for a layer: ``numerator`` divided by ``denominator``. Both
    arguments are norms. If one of the norms is 0, return 1.
    """
    import tensorflow as tf

    return tf.where((numerator > 0) & (denominator > 0), tf.math.divide_no_nan(numerator, denominator), 1.0)


@cache
def lars() -> "type[tf.keras.optimizers.Optimizer]":
    """Return the LARS optimizer class (You, Gitman, Ginsburg 2017, arXiv:1708.03888, algorithm 1)."""
    import tensorflow as tf

    class LARS(_layerwise()):  # type: ignore[misc]
        slots = ("momentum",)
        options = ("momentum", "weight_decay", "trust")

        def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:  # noqa: ANN401
            rate = self._get_hyper("learning_rate", var.dtype.base_dtype)
            if not is_spared(var):
                decay, weights = self._own["weight_decay"], tf.norm(var)
                rate = rate * _ratio(self._own["trust"] * weights, tf.norm(grad) + decay * weights)
                grad += decay * var
            velocity = self.get_slot(var, "momentum")
            velocity.assign(self._own["momentum"] * velocity + rate * grad)
            return var.assign_sub(velocity).op

    return LARS


@cache
def lamb() -> "type[tf.keras.optimizers.Optimizer]":
    """Return the LAMB optimizer class, with the constants of its paper (arXiv:1904.00962, algorithm 2)."""
    import tensorflow as tf

    class LAMB(_layerwise()):  # type: ignore[misc]
        slots = ("m", "v")
        options = ("weight_decay",)

        def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:  # noqa: ANN401
            rate = self._get_hyper("learning_rate", var.dtype.base_dtype)
            step = tf.cast(self.iterations + 1, var.dtype.base_dtype)
            mean, square = self.get_slot(var, "m"), self.get_slot(var, "v")
            mean.assign(0.9 * mean + 0.1 * grad)
            square.assign(0.999 * square + 0.001 * grad * grad)
            update = mean / (1 - 0.9**step) / (tf.sqrt(square / (1 - 0.999**step)) + 1e-6)
            if not is_spared(var):
                update += self._own["weight_decay"] * var
                rate = rate * _ratio(tf.norm(var), tf.norm(update))
            return var.assign_sub(rate * update).op

    return LAMB
