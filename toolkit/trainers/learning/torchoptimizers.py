"""Create PyTorch's AdamW or SGD with a trainer's options, and list the tensors of an optimizer's state."""

from typing import TYPE_CHECKING

from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.learning.rates import Rates

if TYPE_CHECKING:
    import torch

_SLOTS = {"adam": ("step", "exp_avg", "exp_avg_sq"), "sgd": ("momentum_buffer",)}
"""The names of the state values that an optimizer has for each parameter (torch/optim/adam.py, sgd.py)."""

_EPSILON = 1e-7
"""Adam's epsilon: the default of Keras. PyTorch's default is 1e-8."""


def optimizer(model: "torch.nn.Module", learning: Learning, rates: Rates) -> "torch.optim.Optimizer":
    """Return PyTorch's AdamW or SGD, without weight decay for biases and normalisations."""
    import torch

    weights = [one for one in model.parameters() if one.ndim > 1]
    others = [one for one in model.parameters() if one.ndim <= 1]
    groups = [{"params": weights, "weight_decay": learning.weight_decay}, {"params": others}]
    rate = float(rates.start if rates.warmup else rates.peak)
    if learning.optimizer == "adam":
        return torch.optim.AdamW(groups, rate, eps=_EPSILON, weight_decay=0.0)
    # PyTorch's velocity does not include the learning rate, so a change of the rate needs no correction.
    return torch.optim.SGD(groups, rate, momentum=learning.momentum, nesterov=learning.nesterov)


def slots(optimizer: "torch.optim.Optimizer", learning: Learning) -> "list[torch.Tensor]":
    """Return all state tensors of an optimizer in a fixed order. Create state tensors that do not exist yet,
    and fill them with zeros.
    """
    import torch

    found = []
    names = _SLOTS["adam" if learning.optimizer == "adam" else "sgd"]
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            for name in names:
                if state.get(name) is None:
                    state[name] = torch.tensor(0.0) if name == "step" else torch.zeros_like(parameter)
                found.append(state[name])
    return found


def set_rate(optimizer: "torch.optim.Optimizer", rate: float) -> None:
    """Set the learning rate of all parameters."""
    for group in optimizer.param_groups:
        group["lr"] = rate
