"""Types that the packages ``ranks``, ``learning`` and ``frameworks`` import; this module imports none of
them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import tensorflow as tf

FrameworkName = Literal["tensorflow", "pytorch", "jax"]

Step = Callable[..., "tuple[tf.Tensor, tf.Tensor]"]
"""Processes one batch on one device; returns the sum of the losses and the number of right answers."""

Steer = Callable[["tf.keras.optimizers.Optimizer", "tf.Tensor"], None]
"""Sets an optimizer's learning rate for a step, from the number of epochs done; runs in a TensorFlow
graph.
"""
