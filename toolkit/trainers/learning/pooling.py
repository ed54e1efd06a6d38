"""Pool the output of a convolution before bias and ReLU. Keras pools after bias and ReLU.

Adding a bias and applying ReLU keep the order of the values in a window, even with rounding errors. The
output is therefore bitwise the same whether pooling comes before or after bias and ReLU. After pooling with
windows of 2 x 2, bias, ReLU and their gradients process only a quarter of the values.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.trainers.learning.convolutions import biased, only_reader

if TYPE_CHECKING:
    import tensorflow as tf


def pool_first(model: "tf.keras.Model") -> int:
    """Change each convolution whose output goes only to a max-pooling layer: apply its bias and activation
    (ReLU or none) after the pooling.

    Return the number of changed convolutions. The layers keep their Keras classes, so that Keras saves the
    model as a plain Keras model. Do not build another model on the output of a changed convolution, because
    this output lacks bias and ReLU.
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
