"""The settings of a training: the optimizer, the learning rate over time, and the precision of a step.

``docs/learning.md`` explains each option and cites its paper. ``docs/learning-benchmarks.md`` contains
measurements.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from toolkit.trainers.kinds import Steer
from toolkit.trainers.learning import optimizers, precision
from toolkit.trainers.learning.rates import Decay, Rates, Scaling, scale_rate

if TYPE_CHECKING:
    import tensorflow as tf

    from toolkit.trainers.ranks.world import World

Compiled = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class Learning:
    """The user's settings for learning rate, optimizer and precision. ``learning_rate`` is the learning rate
    for an update with ``reference_batch`` samples.

    If ``reference_batch`` is 0, ``learning_rate`` is the learning rate for an update with one batch of one
    device. If ``warmup_from`` is ``None``, the warm-up starts at ``learning_rate`` or at the scaled learning
    rate, whichever is lower.
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

    @classmethod
    def taken(cls, options: dict[str, object]) -> Self:
        """Return the settings from the parsed options, and remove these options from ``options``."""
        return cls(**{name: options.pop(name) for name in cls.__slots__})  # type: ignore[arg-type]

    def of_batch(self, batch: int) -> Self:
        """Return these settings, with ``reference_batch`` set to ``batch`` if ``reference_batch`` is 0."""
        return self if self.reference_batch else replace(self, reference_batch=batch)

    def settings(self) -> Mapping[str, str | int | float]:
        """Return the settings, which the user must not change when resuming a training."""
        chosen = {**asdict(self), "decay_at": ",".join(f"{epoch:g}" for epoch in self.decay_at)}
        return {
            **chosen,
            "warmup_from": self.learning_rate if self.warmup_from is None else self.warmup_from,
        }

    def ends(self) -> bool:
        """Return whether the learning rate depends on the total number of epochs."""
        return self.decay in ("cosine", "polynomial") or (self.decay == "step" and not self.decay_at)

    @property
    def corrected(self) -> bool:
        """Return whether the trainer rescales the optimizer's velocity when the learning rate changes."""
        return self.optimizer == "sgd" and self.momentum > 0 and self.momentum_correction

    def scaled(self, world: "World", batch: int) -> float:
        """Return the learning rate at the end of the warm-up. ``batch`` is the number of samples in a batch.
        For each update, each device of each rank processes ``accumulate`` batches.
        """
        samples = batch * self.accumulate * world.averaged
        return scale_rate(self.learning_rate, samples / (self.reference_batch or batch), self.scaling)

    def optimizer_for(self, world: "World", batch: int) -> "tf.keras.optimizers.Optimizer":
        """Return an optimizer that averages the gradients over all ranks of ``world``. ``batch`` is the
        number of samples in a batch of one device.
        """
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
        """Return the variables that a checkpoint must contain in addition to ``optimizer.variables()``: the
        learning rate, if it changes, and the variables of loss scaling.
        """
        kept = [optimizer.learning_rate] if self.decay != "constant" or self.warmup_epochs else []
        return kept + precision.loss_scale(optimizer)

    def rates(self, world: "World", batch: int, epochs: float) -> Rates:
        """Return the schedule of the learning rate for a training of ``epochs`` epochs."""
        peak = self.scaled(world, batch)
        return Rates(
            peak=peak,
            start=min(self.learning_rate, peak) if self.warmup_from is None else self.warmup_from,
            epochs=epochs,
            warmup=self.warmup_epochs,
            decay=self.decay,
            step_epochs=self.decay_at,
            factor=self.decay_factor,
            power=self.decay_power,
            final=self.decay_to,
        )

    def course(self, world: "World", batch: int, epochs: int) -> Steer | None:
        """Return a function that sets the learning rate in each training step, or ``None`` if the rate is
        constant.
        """
        rates = self.rates(world, batch, epochs)
        if rates.constant:
            return None

        def steer(optimizer: "tf.keras.optimizers.Optimizer", trained_epochs: "tf.Tensor") -> None:
            import tensorflow as tf

            rate, before = (
                tf.cast(rates.rate(trained_epochs, tf), tf.float32),
                optimizer.learning_rate.read_value(),
            )
            if self.corrected:
                # In Keras, the velocity includes the old learning rate, so rescale the velocity to the new
                # rate (Goyal et al. 2017, arXiv:1706.02677, equation 10).
                factor = tf.where(before > 0, tf.math.divide_no_nan(rate, before), 1.0)
                if self.nesterov:
                    optimizer.correction.assign(factor)
                else:
                    optimizer.momentum.assign(self.momentum * factor)
            optimizer.learning_rate.assign(rate)

        return steer
