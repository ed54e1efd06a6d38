"""Types that the packages ``ranks``, ``learning`` and ``frameworks`` of ``toolkit.trainers`` share. To avoid
circular imports, this module does not import ``ranks``, ``learning`` or ``frameworks``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import tensorflow as tf

FrameworkName = Literal["tensorflow", "pytorch", "jax"]

Step = Callable[..., "tuple[tf.Tensor, tf.Tensor]"]
"""A function that trains or evaluates a model on one batch on one device. The function returns the sum of the
losses and the number of correct predictions in this batch.
"""

Steer = Callable[["tf.keras.optimizers.Optimizer", "tf.Tensor"], None]
"""A function in a TensorFlow graph that sets the learning rate of an optimizer. The second argument is the
number of trained epochs, with a fraction for a started epoch.
"""
