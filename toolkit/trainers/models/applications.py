"""The image models of ``keras.applications`` by name, untrained: ResNet50, ResNet152V2 and so on."""

from typing import TYPE_CHECKING

from toolkit.trainers.models.networks import Shape
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import tensorflow as tf

_SCALE_THEMSELVES = ("ConvNeXt", "EfficientNet", "MobileNetV3", "RegNet", "ResNetRS")
"""Keras's model families that scale the image bytes themselves (source: Keras's documentation of
each model).
"""


def application(name: str, shape: Shape, classes: int, *, side: int) -> "tf.keras.Model":
    """Return the untrained model ``name`` of ``keras.applications`` with ``classes`` output classes. The
    model first resizes images of ``shape`` to ``side`` x ``side`` pixels.

    Raises:
        Trouble: if Keras has no model ``name``, or ``side`` is too small for this model.
    """
    import tensorflow as tf

    make = getattr(tf.keras.applications, name, None) if name in names() else None
    if make is None:
        raise Trouble(
            f"--model {name}: keras.applications has no such model; choose one of: {', '.join(names())}"
        )
    layers = tf.keras.layers
    inputs = x = layers.Input(shape)
    if shape[:2] != (side, side):
        x = layers.Resizing(side, side)(x)
    if not name.startswith(_SCALE_THEMSELVES):
        x = layers.Rescaling(1 / 127.5, -1)(x)
    try:
        body = make(weights=None, include_top=False, input_shape=(side, side, shape[2]), pooling="avg")
    except ValueError as error:
        raise Trouble(f"--model {name} --image-size {side}: {error}") from None
    return tf.keras.Model(inputs, layers.Dense(classes)(body(x)), name=name)


def names() -> list[str]:
    """Return the names of all models in ``keras.applications``, sorted."""
    import tensorflow as tf

    known = vars(tf.keras.applications)
    return sorted(name for name, one in known.items() if name[:1].isupper() and callable(one))
