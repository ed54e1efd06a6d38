"""Convolutions that are pooled before their bias is added and negatives are cut, where Keras does it after.

The largest of a window stays the largest when the same is added to all of it, or when what is negative
becomes 0; rounding does not change an order. So the numbers that leave the pooling are the same to the bit,
and bias, ReLU and their gradients have only what is left to go through: a quarter with windows of 2 x 2.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.trainers.learning.convolutions import biased, only_reader

if TYPE_CHECKING:
    import tensorflow as tf


def pool_first(model: "tf.keras.Model") -> int:
    """Let all convolutions that only a maximum pooling reads leave bias and ReLU to it; return how many.

    The layers stay what they are, so that the model is saved as one of Keras's own. Whoever asks such a
    convolution itself for its output, as a model made of it later, gets it without bias and ReLU.
    """
    import tensorflow as tf

    orderly = (tf.keras.activations.relu, tf.keras.activations.linear)
    pairs = [
        (layer, pool)
        for layer in biased(model)
        if layer.activation in orderly
        and (pool := only_reader(layer, tf.keras.layers.MaxPooling2D))
        and pool.data_format == layer.data_format
    ]
    for convolution, pool in pairs:
        _swap(convolution, pool)
    return len(pairs)


def _swap(convolution: "tf.keras.layers.Layer", pool: "tf.keras.layers.Layer") -> None:
    import tensorflow as tf

    pooled: Callable[[tf.Tensor], tf.Tensor] = pool.call

    def convolve(inputs: "tf.Tensor") -> "tf.Tensor":
        return convolution.convolution_op(inputs, convolution.kernel)

    def finish(inputs: "tf.Tensor") -> "tf.Tensor":
        return convolution.activation(tf.nn.bias_add(pooled(inputs), convolution.bias))

    convolution.call, pool.call = convolve, finish
