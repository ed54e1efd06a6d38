"""Types that ranks, learning and frameworks share; these packages import this module, and it imports none of
them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import tensorflow as tf

FrameworkName = Literal["tensorflow", "pytorch", "jax"]

Step = Callable[..., "tuple[tf.Tensor, tf.Tensor]"]
"""One device's work on a batch: it returns the sums of the loss and of the right answers."""

Steer = Callable[["tf.keras.optimizers.Optimizer", "tf.Tensor"], None]
"""Sets the rate for a step, after a number of epochs; part of a graph."""
