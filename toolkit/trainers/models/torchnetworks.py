"""The networks of the trainers in PyTorch. Inputs are unscaled bytes; outputs are logits.

The networks have the same layers as the Keras networks in :mod:`toolkit.trainers.models.networks`. As in
Keras, the initial weights have Glorot's uniform distribution. In the residual network, the initial weights of
convolutions have He's normal distribution. Initial biases are zero.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def dense(side: int, classes: int) -> "torch.nn.Module":
    """Return the dense MNIST network: Flatten, Dense with 512 outputs, Dense with ``classes`` outputs."""
    from torch import nn

    layers = [
        _scale_layer(1 / 255),
        nn.Flatten(),
        nn.Linear(side * side, 512),
        nn.ReLU(),
        nn.Linear(512, classes),
    ]
    return _draw_weights(nn.Sequential(*layers))


def two_convolutions(side: int, classes: int) -> "torch.nn.Module":
    """Return Keras's classic MNIST network with dropout: 3 x 3 convolutions with 32 and 64 filters, pooling,
    and Dense layers with 128 and ``classes`` outputs.
    """
    from torch import nn

    inner = (side - 4) // 2
    layers = [
        _scale_layer(1 / 255),
        nn.Unflatten(1, (1, side)),
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten()),
        *(nn.Linear(64 * inner * inner, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, classes)),
    ]
    return _draw_weights(nn.Sequential(*layers))


def five_by_five(side: int, classes: int) -> "torch.nn.Module":
    """Return the network of TensorFlow's tutorial: 5 x 5 convolutions with 32 and 64 filters, each with
    pooling, and Dense layers with 1024 and ``classes`` outputs.
    """
    from torch import nn

    inner = side // 4
    layers = [
        _scale_layer(1 / 255),
        nn.Unflatten(1, (1, side)),
        *(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(64 * inner * inner, 1024), nn.ReLU(), nn.Dropout(0.4), nn.Linear(1024, classes)),
    ]
    return _draw_weights(nn.Sequential(*layers))


def residual(classes: int, *, depth: int) -> "torch.nn.Module":
    """Return the small residual network for CIFAR of He et al. 2015 (arXiv:1512.03385, section 4.2).

    ``depth`` is the number of layers, which must be 6 n + 2. The network has n blocks with 16 filters, n
    blocks with 32 filters and n blocks with 64 filters. Images have the shape (height, width, colours).
    """
    from torch import nn

    layers: list[Any] = [_scale_layer(1 / 127.5, -1.0), _channels_first(), *_convolution(3, 16), nn.ReLU()]
    before = 16
    for filters in (16, 32, 64):
        for block in range((depth - 2) // 6):
            layers.append(_block(before, filters, stride=2 if filters > 16 and block == 0 else 1))
            before = filters
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes)]
    model = _draw_weights(nn.Sequential(*layers))
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_in")
    return model


def _scale_layer(factor: float, offset: float = 0.0) -> "torch.nn.Module":
    from torch import nn

    class Rescaling(nn.Module):  # type: ignore[misc]
        def forward(self, inputs: "torch.Tensor") -> "torch.Tensor":
            return inputs.float() * factor + offset

    return Rescaling()


def _channels_first() -> "torch.nn.Module":
    from torch import nn

    class ChannelsFirst(nn.Module):  # type: ignore[misc]
        def forward(self, inputs: "torch.Tensor") -> "torch.Tensor":
            return inputs.permute(0, 3, 1, 2).contiguous()

    return ChannelsFirst()


def _convolution(in_channels: int, filters: int, stride: int = 1, size: int = 3) -> "list[torch.nn.Module]":
    from torch import nn

    layer = nn.Conv2d(in_channels, filters, size, stride, padding=size // 2, bias=False)
    # In PyTorch, momentum is the weight of the new batch, so 0.1 in PyTorch equals 0.9 in Keras.
    return [layer, nn.BatchNorm2d(filters, eps=1e-3, momentum=0.1)]


def _block(in_channels: int, filters: int, *, stride: int) -> "torch.nn.Module":
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                *_convolution(in_channels, filters, stride), nn.ReLU(), *_convolution(filters, filters)
            )
            # If the number of filters changes, the shortcut is a 1 x 1 convolution (option B of He et al.).
            self.shortcut = nn.Sequential(
                *(_convolution(in_channels, filters, stride, 1) if stride > 1 else ())
            )

        def forward(self, inputs: "torch.Tensor") -> "torch.Tensor":
            return nn.functional.relu(self.inner(inputs) + self.shortcut(inputs))

    return Block()


def _draw_weights(model: "torch.nn.Module") -> "torch.nn.Module":
    """Draw the initial weights as Keras does (Glorot's uniform distribution), and return the model."""
    from torch import nn

    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return model
