"""Dropout that saves time: it draws only 1 to 16 random bits for each value, while Keras draws a float for
each value.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

_BITS = (1, 2, 4, 8, 16)
"""The possible numbers of random bits per value. A dropout rate of 0.5 needs 1 bit; 16 bits represent any
rate to within 1/65536.
"""


def draw_bits(model: "tf.keras.Model") -> int:
    """Make the dropout layers of a model use :func:`drop_out`. Return the number of changed layers.

    The layers keep their Keras classes, so that Keras saves the model as a plain Keras model. The function
    does not change dropout layers that have a seed, so that these layers draw the same random numbers as in
    Keras.
    """
    import tensorflow as tf

    kind = tf.keras.layers.Dropout
    found = [layer for layer in model.submodules if isinstance(layer, kind) and layer.seed is None]
    for layer in found:
        layer._random_generator.dropout = drop_out  # noqa: SLF001 - not public in Keras
    return len(found)


def drop_out(inputs: "tf.Tensor", rate: float, noise_shape: Any = None) -> "tf.Tensor":  # noqa: ANN401
    """Set a random fraction ``rate`` (0 to 1) of the inputs to 0, and scale up the other inputs, so that the
    expected mean of all values stays the same.

    As in Keras, if ``noise_shape`` has a 1 for a dimension, the function keeps or drops all values along this
    dimension together.
    """
    import tensorflow as tf

    bits = next((bits for bits in _BITS if (rate * 2**bits).is_integer()), _BITS[-1])
    of = 1 << bits
    least = round(rate * of)
    if not 0 < least < of:
        return tf.nn.dropout(inputs, rate, noise_shape)
    shape = tf.shape(inputs) if noise_shape is None else tf.convert_to_tensor(noise_shape, tf.int32)
    kept = tf.reshape(_draw_masks(tf.reduce_prod(shape), bits, least), shape)
    return tf.where(kept, inputs * tf.cast(of / (of - least), inputs.dtype), tf.zeros_like(inputs))


def _draw_masks(count: "tf.Tensor", bits: int, threshold: int) -> "tf.Tensor":
    """Draw ``count`` random numbers of ``bits`` bits each. Return a mask of booleans, which are true for
    numbers of at least ``threshold``.

    The function draws random bytes, or random 16-bit words if ``bits`` is 16. With ``bits`` 4, the
    mask begins with the numbers in the low four bits of all bytes. The numbers in the high four bits follow.
    """
    import tensorflow as tf

    kind = tf.uint8 if bits <= 8 else tf.uint16
    in_each = 8 * kind.size // bits
    in_word = 8 * tf.int64.size // bits
    words = tf.random.uniform([(count + in_word - 1) // in_word], tf.int64.min, tf.int64.max, tf.int64)
    units = tf.reshape(tf.bitcast(words, kind), [-1])
    every = (1 << bits) - 1
    shifts = [bits * place for place in range(in_each)]
    # A byte can hold several numbers, such as two numbers of 4 bits. To compare the numbers in the high bits,
    # shift ``threshold`` left. This is faster than shifting all numbers right.
    at_least = [
        tf.bitwise.bitwise_and(units, tf.constant(every << shift, kind))
        >= tf.constant(threshold << shift, kind)
        for shift in shifts
    ]
    return tf.concat(at_least, 0)[:count]
