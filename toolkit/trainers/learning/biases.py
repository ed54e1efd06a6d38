"""Biases that a batch normalisation takes away again.

It subtracts the mean of a batch, and with it whatever was added to all of the batch: the loss does not depend
on such a bias, and its gradient is 0 but for rounding. Computing that reads once more all that flows back
through the layer; ResNet50 has 53 of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.trainers.learning.convolutions import biased, only_reader

if TYPE_CHECKING:
    import tensorflow as tf


def spare_biases(model: "tf.keras.Model") -> int:
    """Let the gradient of all such biases be 0 without computing it; return how many there are.

    The layers stay what they are, so that the model is saved as one of Keras's own. A normalisation that is
    frozen afterwards would need the gradient.
    """
    import tensorflow as tf

    found = [
        layer
        for layer in biased(model)
        if layer.activation is tf.keras.activations.linear and _normalised(layer)
    ]
    for layer in found:
        _spare(layer)
    return len(found)


def _normalised(convolution: "tf.keras.layers.Layer") -> bool:
    """Tell whether only the normalisation of its channels, by the mean of each batch, reads it."""
    import tensorflow as tf

    reader = only_reader(convolution, tf.keras.layers.BatchNormalization)
    return reader is not None and reader.trainable and list(reader.axis) == [3]


def _spare(convolution: "tf.keras.layers.Layer") -> None:
    import tensorflow as tf

    def without_gradient(bias: "tf.Tensor") -> "tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]":
        return tf.identity(bias), lambda _: tf.zeros_like(bias)

    constant = tf.custom_gradient(without_gradient)

    def convolve(inputs: "tf.Tensor") -> "tf.Tensor":
        outputs = convolution.convolution_op(inputs, convolution.kernel)
        return tf.nn.bias_add(outputs, constant(tf.convert_to_tensor(convolution.bias)))

    convolution.call = convolve
