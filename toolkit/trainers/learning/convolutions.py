"""In a Keras model, find the convolutions whose computation toolkit may replace, and find the layer that
reads a convolution's output.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def biased(model: "tf.keras.Model") -> "list[tf.keras.layers.Conv2D]":
    """Return the convolution layers that have a bias and whose output is not an output of the model.

    The result includes layers of nested models, but not grouped convolutions or subclasses of ``Conv2D``.
    """
    import tensorflow as tf

    models = [part for part in model.submodules if isinstance(part, tf.keras.Model)]
    shown = {id(output) for part in (model, *models) for output in tf.nest.flatten(part.outputs or [])}
    return [layer for layer in model.submodules if _plain(layer) and id(layer.output) not in shown]


def _plain(layer: "tf.keras.layers.Layer") -> bool:
    import tensorflow as tf

    # Subclasses of Conv2D and grouped convolutions may compute differently from a plain Conv2D.
    return (
        type(layer) is tf.keras.layers.Conv2D
        and layer.use_bias
        and layer.groups == 1
        and layer.data_format == "channels_last"
        and layer.activity_regularizer is None
        and len(layer.inbound_nodes) == 1
        and layer.output.shape.rank == 4
    )


def only_reader(
    convolution: "tf.keras.layers.Layer", kind: "type[tf.keras.layers.Layer]"
) -> "tf.keras.layers.Layer | None":
    """Return the layer that reads a convolution's output. Return ``None`` if no layer or several layers read
    the output.

    Also return ``None`` if the layer is not of the class ``kind``, is applied more than once, or computes in
    another precision than the convolution.
    """
    if len(convolution.outbound_nodes) != 1:
        return None
    reader = convolution.outbound_nodes[0].layer
    alone = (
        type(reader) is kind
        and len(reader.inbound_nodes) == 1
        and reader.compute_dtype == convolution.compute_dtype
    )
    return reader if alone else None
