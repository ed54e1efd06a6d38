"""The networks of the trainers in Keras. Inputs are unscaled bytes, which the networks scale; outputs are
logits.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

Shape = tuple[int, int, int]
"""Height, width and channels of an image."""


def dense(side: int, classes: int) -> "tf.keras.Model":
    """Return the dense MNIST network: Flatten, Dense with 512 outputs, Dense with ``classes`` outputs."""
    import tensorflow as tf

    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((side, side)),
            layers.Rescaling(1 / 255),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dense(classes),
        ]
    )


def two_convolutions(side: int, classes: int) -> "tf.keras.Model":
    """Return Keras's classic MNIST network with dropout: 3 x 3 convolutions with 32 and 64 filters, pooling,
    and Dense layers with 128 and ``classes`` outputs.
    """
    import tensorflow as tf

    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((side, side)),
            layers.Rescaling(1 / 255),
            layers.Reshape((side, side, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(classes),
        ]
    )


def five_by_five(side: int, classes: int) -> "tf.keras.Model":
    """Return the network of TensorFlow's tutorial: 5 x 5 convolutions with 32 and 64 filters, each with
    pooling, and Dense layers with 1024 and ``classes`` outputs.
    """
    import tensorflow as tf

    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((side, side)),
            layers.Rescaling(1 / 255),
            layers.Reshape((side, side, 1)),
            layers.Conv2D(32, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(1024, activation="relu"),
            layers.Dropout(0.4),
            layers.Dense(classes),
        ]
    )


def residual(shape: Shape, classes: int, *, depth: int) -> "tf.keras.Model":
    """Return the small residual network for CIFAR of He et al. 2015 (arXiv:1512.03385, section 4.2).

    ``depth`` is the number of layers, which must be 6 n + 2. The network has n blocks with 16 filters, n
    blocks with 32 filters and n blocks with 64 filters.
    """
    import tensorflow as tf

    layers = tf.keras.layers
    inputs = layers.Input(shape)
    x = layers.Rescaling(1 / 127.5, -1)(inputs)
    x = _normal(_convolution(x, 16))
    for filters in (16, 32, 64):
        for block in range((depth - 2) // 6):
            x = _block(x, filters, stride=2 if filters > 16 and block == 0 else 1)
    x = layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(inputs, layers.Dense(classes)(x), name=f"resnet{depth}")


def _convolution(x: "tf.Tensor", filters: int, stride: int = 1, size: int = 3) -> "tf.Tensor":
    import tensorflow as tf

    layer = tf.keras.layers.Conv2D(
        filters, size, stride, padding="same", use_bias=False, kernel_initializer="he_normal"
    )
    return layer(x)


def _normal(x: "tf.Tensor", *, rectified: bool = True) -> "tf.Tensor":
    import tensorflow as tf

    x = tf.keras.layers.BatchNormalization(momentum=0.9)(x)
    return tf.keras.layers.ReLU()(x) if rectified else x


def _block(x: "tf.Tensor", filters: int, *, stride: int) -> "tf.Tensor":
    import tensorflow as tf

    layers = tf.keras.layers
    y = _normal(_convolution(x, filters, stride))
    y = _normal(_convolution(y, filters), rectified=False)
    if stride > 1:
        # If the number of filters changes, the shortcut is a convolution of 1 x 1 (option B of He et al.).
        x = _normal(_convolution(x, filters, stride, size=1), rectified=False)
    return layers.ReLU()(layers.Add()([x, y]))
