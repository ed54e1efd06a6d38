"""Train with mixed precision: layers compute in 16 bits, and weights and updates stay in float32.

With float16, Keras multiplies the loss by an adaptive factor (loss scaling). Without this factor, small
gradients would round to zero (Micikevicius et al. 2018, arXiv:1710.03740). bfloat16 has the range of float32
and needs no loss scaling.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import tensorflow as tf

Mixed = Literal["off", "float16", "bfloat16"]


def compute_in(mixed: Mixed) -> None:
    """Set the precision in which the layers of a model compute, for all models created after this call."""
    import tensorflow as tf

    policy = "float32" if mixed == "off" else f"mixed_{mixed}"
    tf.keras.mixed_precision.set_global_policy(policy)


def scaling(optimizer: "tf.keras.optimizers.Optimizer") -> "tf.keras.optimizers.Optimizer":
    """Return ``optimizer`` with loss scaling. Loss scaling skips an update if a gradient is not finite."""
    import tensorflow as tf

    return tf.keras.mixed_precision.LossScaleOptimizer(optimizer)


def loss_scale(optimizer: "tf.keras.optimizers.Optimizer") -> "list[tf.Variable]":
    """Return the variables of loss scaling: the scaling factor, and the number of steps since the factor
    changed. Return an empty list if the optimizer has no loss scaling.
    """
    import tensorflow as tf

    if not isinstance(optimizer, tf.keras.mixed_precision.LossScaleOptimizer):
        return []
    scale = optimizer._loss_scale  # noqa: SLF001 - no public access in Keras
    return [scale.current_loss_scale, scale.counter]


def enlarge_loss(loss: "tf.Tensor", optimizer: "tf.keras.optimizers.Optimizer") -> "tf.Tensor":
    """Return the loss multiplied by the optimizer's loss scaling factor. If the optimizer has no loss
    scaling, return the loss unchanged.
    """
    import tensorflow as tf

    if isinstance(optimizer, tf.keras.mixed_precision.LossScaleOptimizer):
        return optimizer.get_scaled_loss(loss)
    return loss
