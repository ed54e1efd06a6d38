"""Adam and SGD for JAX, with the settings of :class:`Learning`. XLA compiles an optimizer together with the
training step.
"""

from typing import Any

from toolkit.trainers.learning.policy import Learning

Tree = Any
"""A JAX pytree: arrays in nested lists and dictionaries."""

_MEAN, _SQUARE, _EPSILON = 0.9, 0.999, 1e-7
"""Constants of Adam as in Keras: the decay rates of Adam's two moving averages, and epsilon."""


def slots(parameters: Tree, learning: Learning) -> Tree:
    """Return the initial state of the optimizer (slots), which consists of zeros."""
    import jax
    import jax.numpy as jnp

    def zeros() -> Tree:
        return jax.tree.map(jnp.zeros_like, parameters)

    if learning.optimizer == "adam":
        return {"mean": zeros(), "square": zeros(), "step": jnp.zeros(())}
    return {"velocity": zeros()}


def update(
    learning: Learning, parameters: Tree, slots: Tree, gradients: Tree, rate: Tree
) -> tuple[Tree, Tree]:
    """Return the updated parameters and the updated state of the optimizer. ``slots`` is the old state, and
    ``rate`` is the learning rate. Weight decay does not apply to biases and normalisations.
    """
    step = _adam if learning.optimizer == "adam" else _sgd
    return step(learning, parameters, slots, gradients, rate)


def _adam(
    learning: Learning, parameters: Tree, slots: Tree, gradients: Tree, rate: Tree
) -> tuple[Tree, Tree]:
    """Return parameters and state after one step of Adam with decoupled weight decay (arXiv:1711.05101)."""
    import jax
    import jax.numpy as jnp

    step = slots["step"] + 1
    mean = jax.tree.map(lambda old, new: _MEAN * old + (1 - _MEAN) * new, slots["mean"], gradients)
    square = jax.tree.map(
        lambda old, new: _SQUARE * old + (1 - _SQUARE) * new * new, slots["square"], gradients
    )
    length, root = rate / (1 - _MEAN**step), jnp.sqrt(1 - _SQUARE**step)

    def moved(parameter: Tree, gradient_mean: Tree, gradient_square: Tree) -> Tree:
        decayed = parameter * (1 - rate * _decay(learning, parameter))
        return decayed - length * gradient_mean / (jnp.sqrt(gradient_square) / root + _EPSILON)

    return jax.tree.map(moved, parameters, mean, square), {"mean": mean, "square": square, "step": step}


def _sgd(learning: Learning, parameters: Tree, slots: Tree, gradients: Tree, rate: Tree) -> tuple[Tree, Tree]:
    """Return the parameters and the state after one step of SGD. As in PyTorch, the velocity (the sum of
    gradients that momentum accumulates) does not include the learning rate.
    """
    import jax

    momentum = learning.momentum
    gradients = jax.tree.map(lambda new, one: new + _decay(learning, one) * one, gradients, parameters)
    velocity = jax.tree.map(lambda old, new: momentum * old + new, slots["velocity"], gradients)
    ahead = (
        jax.tree.map(lambda new, fast: new + momentum * fast, gradients, velocity)
        if learning.nesterov
        else velocity
    )
    return jax.tree.map(lambda one, way: one - rate * way, parameters, ahead), {"velocity": velocity}


def _decay(learning: Learning, parameter: Tree) -> float:
    return learning.weight_decay if parameter.ndim > 1 else 0.0
