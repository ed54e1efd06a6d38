"""Convolutions that are pooled before their bias is added and negatives are cut, where Keras does it after.

The largest of a window stays the largest when the same is added to all of it, or when what is negative
becomes 0; rounding does not change an order. So the numbers that leave the pooling are the same to the bit,
and bias, ReLU and their gradients have only what is left to go through: a quarter with windows of 2 x 2.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def pool_first(model: "tf.keras.Model") -> int:
    """Let all convolutions that only a maximum pooling reads leave bias and ReLU to it; return how many.

    The layers stay what they are, so that the model is saved as one of Keras's own. Whoever asks such a
    convolution itself for its output, as a model made of it later, gets it without bias and ReLU.
    """
    import tensorflow as tf

    models = [part for part in model.submodules if isinstance(part, tf.keras.Model)]
    shown = {id(output) for part in (model, *models) for output in tf.nest.flatten(part.outputs or [])}
    pairs = [
        (layer, pool)
        for layer in model.submodules
        if _may_wait(layer) and id(layer.output) not in shown and (pool := _only_reader(layer))
    ]
    for convolution, pool in pairs:
        _swap(convolution, pool)
    return len(pairs)


def _may_wait(layer: "tf.keras.layers.Layer") -> bool:
    """Tell whether it is a plain convolution whose bias and activation keep the order of numbers."""
    import tensorflow as tf

    # Subclasses may compute something else, and Keras takes groups another way.
    return (
        type(layer) is tf.keras.layers.Conv2D
        and layer.use_bias
        and layer.groups == 1
        and layer.data_format == "channels_last"
        and layer.activation in (tf.keras.activations.relu, tf.keras.activations.linear)
        and layer.activity_regularizer is None
        and len(layer.inbound_nodes) == 1
        and layer.output.shape.rank == 4
    )


def _only_reader(convolution: "tf.keras.layers.Layer") -> "tf.keras.layers.Layer | None":
    """Return the pooling that alone reads it, and reads nothing else."""
    import tensorflow as tf

    if len(convolution.outbound_nodes) != 1:
        return None
    reader = convolution.outbound_nodes[0].layer
    alone = (
        type(reader) is tf.keras.layers.MaxPooling2D
        and len(reader.inbound_nodes) == 1
        and reader.data_format == convolution.data_format
        and reader.compute_dtype == convolution.compute_dtype
    )
    return reader if alone else None


def _swap(convolution: "tf.keras.layers.Layer", pool: "tf.keras.layers.Layer") -> None:
    import tensorflow as tf

    pooled: Callable[[tf.Tensor], tf.Tensor] = pool.call

    def convolve(inputs: "tf.Tensor") -> "tf.Tensor":
        return convolution.convolution_op(inputs, convolution.kernel)

    def finish(inputs: "tf.Tensor") -> "tf.Tensor":
        return convolution.activation(tf.nn.bias_add(pooled(inputs), convolution.bias))

    convolution.call, pool.call = convolve, finish
