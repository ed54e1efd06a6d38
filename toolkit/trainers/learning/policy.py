"""How a model learns: its optimizer, the course of the learning rate, and what a step computes with.

``docs/learning.md`` explains every option, with its paper and a measurement.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from toolkit.trainers.learning import optimizers, precision
from toolkit.trainers.learning.rates import Decay, Rates, Scaling, scaled

if TYPE_CHECKING:
    import tensorflow as tf

    from toolkit.trainers.ranks.world import World

Steer = Callable[["tf.keras.optimizers.Optimizer", "tf.Tensor"], None]
"""Sets the rate for a step, after so many epochs; part of a graph."""

Compiled = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class Learning:
    """What a person chose; ``learning_rate`` is for an update by ``reference_batch`` samples.

    Without a ``reference_batch`` that is one batch, and without a ``warmup_from`` the warm-up rises from
    ``learning_rate`` itself, or stays at the scaled one where that is less.
    """

    learning_rate: float
    reference_batch: int = 0
    scaling: Scaling = "linear"
    warmup_epochs: float = 0.0
    warmup_from: float | None = None
    decay: Decay = "constant"
    decay_at: tuple[float, ...] = ()
    decay_factor: float = 0.0
    decay_power: float = 2.0
    decay_to: float = 0.0
    optimizer: optimizers.Name = "adam"
    momentum: float = 0.9
    nesterov: bool = False
    momentum_correction: bool = True
    weight_decay: float = 0.0
    trust: float = 0.001
    accumulate: int = 1
    compression: Literal["none", "fp16"] = "none"
    label_smoothing: float = 0.0
    mixed_precision: precision.Mixed = "off"
    xla: Compiled = "off"
    sync_batch_norm: bool = False

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command line; what is chosen here are their defaults."""
        from toolkit.trainers.learning.options import add_options

        add_options(self, parser)

    @classmethod
    def taken(cls, options: dict[str, object]) -> Self:
        """Take what belongs here out of the options."""
        return cls(**{name: options.pop(name) for name in cls.__slots__})  # type: ignore[arg-type]

    def of_batch(self, batch: int) -> Self:
        """Return the same with a reference batch: this one, if none was chosen."""
        return self if self.reference_batch else replace(self, reference_batch=batch)

    def settings(self) -> Mapping[str, str | int | float]:
        """Return what two runs must share for one to go on where the other was."""
        chosen = {**asdict(self), "decay_at": ",".join(f"{epoch:g}" for epoch in self.decay_at)}
        return {
            **chosen,
            "warmup_from": self.learning_rate if self.warmup_from is None else self.warmup_from,
        }

    def ends(self) -> bool:
        """Tell whether the course of the rate depends on how many epochs there will be."""
        return self.decay in ("cosine", "polynomial") or (self.decay == "step" and not self.decay_at)

    @property
    def corrected(self) -> bool:
        """Tell whether the velocity follows a rate that changes."""
        return self.optimizer == "sgd" and self.momentum > 0 and self.momentum_correction

    def scaled(self, world: "World", batch: int) -> float:
        """Return the rate that all ranks use, once they are warm, with so many samples a device."""
        samples = batch * self.accumulate * world.averaged
        return scaled(self.learning_rate, samples / (self.reference_batch or batch), self.scaling)

    def optimizer_for(self, world: "World", batch: int) -> "tf.keras.optimizers.Optimizer":
        """Return the optimizer of all ranks."""
        rates = self.rates(world, batch, 1)
        one = optimizers.optimizer(
            self.optimizer,
            float(rates.start if rates.warmup else rates.peak),
            momentum=self.momentum,
            nesterov=self.nesterov,
            decay=self.weight_decay,
            trust=self.trust,
            corrected=self.corrected and not rates.constant,
        )
        distributed = world.distribute(one, *[self.compression] * (self.compression != "none"))
        return precision.scaling(distributed) if self.mixed_precision == "float16" else distributed

    def kept(self, optimizer: "tf.keras.optimizers.Optimizer") -> "list[tf.Variable]":
        """Return what an optimizer goes on with but does not count among its variables."""
        kept = [optimizer.learning_rate] if self.decay != "constant" or self.warmup_epochs else []
        return kept + precision.kept(optimizer)

    def rates(self, world: "World", batch: int, epochs: float) -> Rates:
        """Return the learning rate over so many epochs."""
        peak = self.scaled(world, batch)
        return Rates(
            peak=peak,
            start=min(self.learning_rate, peak) if self.warmup_from is None else self.warmup_from,
            epochs=epochs,
            warmup=self.warmup_epochs,
            decay=self.decay,
            at=self.decay_at,
            factor=self.decay_factor,
            power=self.decay_power,
            to=self.decay_to,
        )

    def course(self, world: "World", batch: int, epochs: int) -> Steer | None:
        """Return how the rate changes over so many epochs; ``None`` if it does not."""
        rates = self.rates(world, batch, epochs)
        if rates.constant:
            return None

        def steer(optimizer: "tf.keras.optimizers.Optimizer", done: "tf.Tensor") -> None:
            import tensorflow as tf

            rate, before = tf.cast(rates.rate(done, tf), tf.float32), optimizer.learning_rate.read_value()
            if self.corrected:
                # Keras's velocity has the rate of its step in it; a velocity of another rate is brought to
                # this one (Goyal et al. 2017, arXiv:1706.02677, equation 10).
                factor = tf.where(before > 0, tf.math.divide_no_nan(rate, before), 1.0)
                if self.nesterov:
                    optimizer.correction.assign(factor)
                else:
                    optimizer.momentum.assign(self.momentum * factor)
            optimizer.learning_rate.assign(rate)

        return steer
