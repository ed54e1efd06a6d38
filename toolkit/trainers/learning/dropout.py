"""Dropout that draws a byte for each number that it may drop, where Keras draws and compares floats."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

_BYTE, _TWO_BYTES = 256, 65536
"""Rates that are a multiple of 1/256 need one byte for each number; others are met to 1/65536."""


def draw_bytes(model: "tf.keras.Model") -> int:
    """Let all dropout layers of a model draw less; return how many.

    The layers stay what they are, so that the model is saved as one of Keras's own. Those with a seed of
    their own keep their numbers.
    """
    import tensorflow as tf

    kind = tf.keras.layers.Dropout
    found = [layer for layer in model.submodules if isinstance(layer, kind) and layer.seed is None]
    for layer in found:
        layer._random_generator.dropout = dropped  # noqa: SLF001 - there is no other way to the draws alone
    return len(found)


def dropped(inputs: "tf.Tensor", rate: float, noise_shape: Any = None) -> "tf.Tensor":  # noqa: ANN401
    """Return the inputs with a share of ``rate`` set to 0 and the others grown, so that the mean stays.

    ``noise_shape`` has a 1 for each dimension along which all numbers are dropped together, as Keras has it.
    """
    import tensorflow as tf

    of = _BYTE if (rate * _BYTE).is_integer() else _TWO_BYTES
    least = round(rate * of)
    if not 0 < least < of:
        return tf.nn.dropout(inputs, rate, noise_shape)
    shape = tf.shape(inputs) if noise_shape is None else tf.convert_to_tensor(noise_shape, tf.int32)
    kept = tf.reshape(_drawn(tf.reduce_prod(shape), of) >= least, shape)
    return tf.where(kept, inputs * tf.cast(of / (of - least), inputs.dtype), tf.zeros_like(inputs))


def _drawn(count: "tf.Tensor", of: int) -> "tf.Tensor":
    """Return so many whole numbers from 0 to ``of``, cut out of long ones."""
    import tensorflow as tf

    kind = tf.uint8 if of == _BYTE else tf.uint16
    each = tf.int64.size // kind.size
    words = tf.random.uniform([(count + each - 1) // each], tf.int64.min, tf.int64.max, tf.int64)
    return tf.reshape(tf.bitcast(words, kind), [-1])[:count]
