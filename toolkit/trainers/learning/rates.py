"""Compute the learning rate at each point of a training, with warm-up, decay, and scaling to the batch size.

The learning rate is a function of the number of trained epochs, which may be a fraction. A resumed training
continues at the point of the schedule at which the previous run stopped, even with another number of ranks.
``docs/learning.md`` explains each option and cites its paper.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

Scaling = Literal["linear", "sqrt", "none"]
Decay = Literal["constant", "step", "exponential", "cosine", "polynomial"]

FACTORS = {"step": 0.1, "exponential": 0.9}
"""The factors by which step decay and exponential decay multiply the learning rate by default."""


def scale_rate(rate: float, batches: float, scaling: Scaling) -> float:
    """Scale the learning rate ``rate`` for a larger batch: an update uses ``batches`` times as many samples
    as the batch for which the user chose ``rate``.

    ``linear`` multiplies the rate by ``batches`` (Goyal et al. 2017, arXiv:1706.02677). ``sqrt`` multiplies
    the rate by the square root of ``batches``, which keeps the variance of an update constant (Krizhevsky
    2014, arXiv:1404.5997). ``none`` returns the rate unchanged.
    """
    return rate * {"linear": batches, "sqrt": math.sqrt(batches), "none": 1.0}[scaling]


@dataclass(frozen=True, slots=True)
class Rates:
    """A schedule in which the learning rate rises from ``start`` to ``peak`` in ``warmup`` epochs, and then
    decays or stays constant.

    A step decay multiplies the learning rate by ``factor`` each time the number of trained epochs reaches a
    value in ``step_epochs``. If ``step_epochs`` is empty, a step decay lowers the rate after
    1/3, 2/3 and 8/9 of the training (Goyal et al.: after 30, 60 and 80 of 90 epochs). An exponential decay
    multiplies the learning rate by ``factor`` in each epoch after the warm-up. If ``factor`` is 0, step decay
    and exponential decay use :data:`FACTORS`. Cosine decay (Loshchilov and Hutter 2017, arXiv:1608.03983) and
    polynomial decay with exponent ``power`` finish after ``epochs`` epochs at ``final`` times the peak rate.
    """

    peak: float
    start: float
    epochs: float
    warmup: float = 0.0
    decay: Decay = "constant"
    step_epochs: tuple[float, ...] = ()
    factor: float = 0.0
    power: float = 2.0
    final: float = 0.0

    @property
    def constant(self) -> bool:
        """Whether the rate stays constant during the training, for any number of ranks.

        With a warm-up, the result is ``False``, even if ``start`` equals ``peak``. If you resume the training
        with more ranks than before, scaling may raise ``peak`` above ``start``.
        """
        return self.decay == "constant" and not self.warmup

    def rate(self, trained_epochs: Any, ops: Any) -> Any:  # noqa: ANN401 - NumPy numbers or tensors
        """Return the learning rate after ``trained_epochs``, the number of epochs trained so far. ``ops`` is
        the module NumPy or TensorFlow.
        """
        cold = self.start + (self.peak - self.start) * trained_epochs / (self.warmup or 1.0)
        return ops.where(
            trained_epochs < self.warmup, cold, self.peak * self._remaining_share(trained_epochs, ops)
        )

    def _remaining_share(self, trained_epochs: Any, ops: Any) -> Any:  # noqa: ANN401
        """Return the learning rate after ``trained_epochs`` epochs as a fraction of the peak rate. The value
        is valid only after the warm-up.
        """
        warm = ops.maximum(trained_epochs - self.warmup, 0.0 * trained_epochs)
        share = ops.minimum(warm / max(self.epochs - self.warmup, 1e-9), 1.0 + 0.0 * trained_epochs)
        factor = self.factor or FACTORS.get(self.decay, 1.0)
        if self.decay == "step":
            edges = self.step_epochs or tuple(self.epochs * part for part in (1 / 3, 2 / 3, 8 / 9))
            return math.prod(
                (ops.where(trained_epochs >= edge, factor + 0.0 * trained_epochs, 1.0) for edge in edges),
                start=1.0,
            )
        if self.decay == "exponential":
            return factor**warm
        if self.decay == "cosine":
            return self.final + (1.0 - self.final) * 0.5 * (1.0 + ops.cos(math.pi * share))
        if self.decay == "polynomial":
            return self.final + (1.0 - self.final) * (1.0 - share) ** self.power
        return 1.0 + 0.0 * trained_epochs
