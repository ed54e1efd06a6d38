"""Compute batch normalisations over the batches of all devices, for trainings in which one device has too few
samples for good statistics.

Peng et al. 2018, arXiv:1711.07240, also compute the mean and variance over all devices. Goyal et al. 2017,
arXiv:1706.02677, section 3.3, compute the mean and variance on each device separately.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

    from toolkit.trainers.ranks.world import World


def synchronise(model: "tf.keras.Model", world: "World") -> int:
    """Make all batch normalisations of a model use the mean and variance over all devices. Return the number
    of changed layers.

    The layers keep their Keras classes, so that Keras saves the model as a plain Keras model.
    """
    import tensorflow as tf

    kind = tf.keras.layers.BatchNormalization
    found = [layer for layer in model.submodules if isinstance(layer, kind)]
    for layer in found:
        # Do not use the fused kernel, which computes mean and variance from this device's batch alone.
        layer.fused = False
        world.share_moments(layer)
    return len(found)


def averaging(layer: "tf.keras.layers.Layer", allreduce: object) -> None:
    """Make a batch normalisation use the mean and variance over the batches of all ranks. All ranks must have
    batches of the same size.

    ``allreduce`` is a differentiable function that returns the mean of a tensor over all ranks.
    """
    import tensorflow as tf

    own = layer._calculate_mean_and_var  # noqa: SLF001 - tf.distribute replaces it, too

    def shared(*args: object, **kwargs: object) -> "tuple[tf.Tensor, tf.Tensor]":
        mean, variance = own(*args, **kwargs)
        both = allreduce(tf.stack([mean, variance + tf.square(mean)]))  # type: ignore[operator]
        return both[0], both[1] - tf.square(both[0])

    layer._calculate_mean_and_var = shared  # noqa: SLF001
