"""The networks of the trainers in JAX. Inputs are unscaled bytes; outputs are logits.

The networks have the same layers as the Keras networks in :mod:`toolkit.trainers.models.networks`. As in
Keras, the initial weights have Glorot's uniform distribution. In the residual network, the initial weights of
convolutions have He's normal distribution. Initial biases are zero.
"""

from functools import partial

from toolkit.trainers.models import jaxlayers as layers
from toolkit.trainers.models.jaxlayers import JaxModel


def dense(side: int, classes: int) -> JaxModel:
    """Return the dense MNIST network: Flatten, Dense with 512 outputs, Dense with ``classes`` outputs."""
    return layers.sequential(
        layers.function(partial(_scale_inputs, factor=1 / 255)),
        layers.function(_flat),
        *(layers.linear(side * side, 512), layers.function(layers.relu), layers.linear(512, classes)),
    )


def two_convolutions(side: int, classes: int) -> JaxModel:
    """Return Keras's classic MNIST network with dropout: 3 x 3 convolutions with 32 and 64 filters, pooling,
    and Dense layers with 128 and ``classes`` outputs.
    """
    inner = (side - 4) // 2
    rectified = layers.function(layers.relu)
    return layers.sequential(
        layers.function(partial(_scale_inputs, factor=1 / 255, channels=1)),
        *(layers.convolution(1, 32, 3), rectified, layers.convolution(32, 64, 3), rectified),
        *(layers.function(layers.pool), layers.dropout(0.25), layers.function(_flat)),
        *(
            layers.linear(64 * inner * inner, 128),
            rectified,
            layers.dropout(0.5),
            layers.linear(128, classes),
        ),
    )


def five_by_five(side: int, classes: int) -> JaxModel:
    """Return the network of TensorFlow's tutorial: 5 x 5 convolutions with 32 and 64 filters, each with
    pooling, and Dense layers with 1024 and ``classes`` outputs.
    """
    inner = side // 4
    rectified, pooled = layers.function(layers.relu), layers.function(layers.pool)
    return layers.sequential(
        layers.function(partial(_scale_inputs, factor=1 / 255, channels=1)),
        *(layers.convolution(1, 32, 5, padding="SAME"), rectified, pooled),
        *(layers.convolution(32, 64, 5, padding="SAME"), rectified, pooled, layers.function(_flat)),
        *(layers.linear(64 * inner * inner, 1024), rectified, layers.dropout(0.4)),
        layers.linear(1024, classes),
    )


def residual(classes: int, *, depth: int) -> JaxModel:
    """Return the small residual network for CIFAR of He et al. 2015 (arXiv:1512.03385, section 4.2).

    ``depth`` is the number of layers, which must be 6 n + 2. The network has n blocks with 16 filters, n
    blocks with 32 filters and n blocks with 64 filters. Images have the shape (height, width, colours).
    """
    parts = [layers.function(partial(_scale_inputs, factor=1 / 127.5, offset=-1.0)), *_convolution(3, 16)]
    parts.append(layers.function(layers.relu))
    before = 16
    for filters in (16, 32, 64):
        for block in range((depth - 2) // 6):
            parts.append(_block(before, filters, stride=2 if filters > 16 and block == 0 else 1))
            before = filters
    return layers.sequential(*parts, layers.function(layers.mean_of_image), layers.linear(64, classes))


def _scale_inputs(
    inputs: layers.Array, *, factor: float, offset: float = 0.0, channels: int = 0
) -> layers.Array:
    """Return ``inputs * factor + offset`` as float32. If ``channels`` is 1, append an axis of size 1 for the
    channel.
    """
    return (inputs[..., None] if channels else inputs).astype("float32") * factor + offset


def _flat(inputs: layers.Array) -> layers.Array:
    return inputs.reshape(len(inputs), -1)


def _convolution(in_channels: int, filters: int, stride: int = 1, size: int = 3) -> list[JaxModel]:
    return [
        layers.convolution(in_channels, filters, size, stride, padding="SAME", bias=False, normal=True),
        layers.normalisation(filters),
    ]


def _block(in_channels: int, filters: int, *, stride: int) -> JaxModel:
    inner = [*_convolution(in_channels, filters, stride), layers.function(layers.relu)]
    # If the number of filters changes, the shortcut is a convolution of 1 x 1 (option B of He et al.).
    shortcut = _convolution(in_channels, filters, stride, 1) if stride > 1 else []
    return layers.residual(
        layers.sequential(*inner, *_convolution(filters, filters)), layers.sequential(*shortcut)
    )
