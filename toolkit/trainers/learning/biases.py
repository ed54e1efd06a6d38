"""Skip the gradient of a convolution's bias if a batch normalisation follows and cancels the bias.

A batch normalisation subtracts the mean of a batch, so a bias before the normalisation has no effect on the
loss. The gradient of such a bias is 0 except for rounding errors. To compute this gradient, TensorFlow would
read all gradients of the convolution's output again. ResNet50 has 53 convolutions whose bias has no effect.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.trainers.learning.convolutions import biased, only_reader

if TYPE_CHECKING:
    import tensorflow as tf


def spare_biases(model: "tf.keras.Model") -> int:
    """Replace the gradient of each convolution's bias by 0 if a batch normalisation follows the convolution.
    Return the number of changed convolutions.

    The convolutions keep their Keras class, so that Keras saves the model as a plain Keras model. Do not
    freeze the batch normalisations later, because a bias before a frozen normalisation has an effect and
    needs its gradient.
    """
    import tensorflow as tf

    found = [
        layer
        for layer in biased(model)
        if layer.activation is tf.keras.activations.linear and _is_normalised(layer)
    ]
    for layer in found:
        _spare(layer)
    return len(found)


def _is_normalised(convolution: "tf.keras.layers.Layer") -> bool:
    """Return whether a trainable batch normalisation over channels is the only layer that reads the output of
    a convolution.
    """
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
