"""Refuse options that a strategy does not support or that have no effect, before a trainer loads TensorFlow.

The table of unsupported options in ``docs/strategies.md`` lists the same :data:`REFUSALS`; a test compares
the table with the code.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.trainers.frameworks import framework_named
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.strategies import STRATEGIES, strategies_of

if TYPE_CHECKING:
    from toolkit.trainers.trainer import Options, Trainer


@dataclass(frozen=True, slots=True)
class Refusal:
    """An unsupported option: the strategies ``strategies`` do not support the value ``value`` of the option
    ``name``. ``why`` is the reason in the error message.
    """

    name: str
    value: str | bool
    strategies: tuple[str, ...]
    why: str

    @property
    def option(self) -> str:
        """The option as a user writes it, for example ``--xla on``."""
        return f"{_flag(self.name)} {self.value}" if isinstance(self.value, str) else _flag(self.name)


_TORCH, _JAX = strategies_of("pytorch"), strategies_of("jax")

REFUSALS = (
    Refusal(
        "compression",
        "fp16",
        ("single", "mirrored", "multiworker", "ps", "mpi-aggregate", "hybrid", *_TORCH, *_JAX),
        "only Horovod compresses gradients; use --strategy horovod",
    ),
    Refusal(
        "sync_batch_norm",
        True,
        ("ps", "mpi-aggregate", "hybrid", *_TORCH),
        "this strategy cannot share the statistics of a batch; use horovod, mirrored or multiworker",
    ),
    Refusal(
        "xla",
        "on",
        ("ps",),
        "XLA cannot compile code that reads a model in other processes; leave out the option",
    ),
    Refusal(
        "mixed_precision",
        "float16",
        ("ps",),
        "workers compute on CPUs, and cannot agree on a loss scaling factor; use bfloat16",
    ),
    Refusal(
        "sync_batch_norm",
        True,
        _JAX,
        ("JAX always normalises over the batches of all devices; leave out the option"),
    ),
    Refusal("xla", "on", _JAX, "JAX always compiles every step with XLA; leave out the option"),
    Refusal("xla", "on", _TORCH, "XLA compiles only TensorFlow; leave out the option"),
    *(
        Refusal("mixed_precision", kind, rows, f"{title} models compute in float32; leave out the option")
        for title, rows in (("PyTorch", _TORCH), ("JAX", _JAX))
        for kind in ("float16", "bfloat16")
    ),
    *(
        Refusal("optimizer", name, rows, f"{title} does not have this optimizer; use --optimizer sgd or adam")
        for title, rows in (("PyTorch", _TORCH), ("JAX", _JAX))
        for name in ("lars", "lamb")
    ),
)

_ONLY = (
    ("momentum", "optimizer", ("sgd", "lars")),
    ("nesterov", "optimizer", ("sgd",)),
    ("momentum_correction", "optimizer", ("sgd",)),
    ("trust", "optimizer", ("lars",)),
    ("decay_at", "decay", ("step",)),
    ("decay_factor", "decay", ("step", "exponential")),
    ("decay_power", "decay", ("polynomial",)),
    ("decay_to", "decay", ("cosine", "polynomial")),
    ("reference_batch", "scaling", ("linear", "sqrt")),
)
"""Options that have an effect only with certain values of another option. An entry has the option's name, the
name of the other option, and the values of the other option.
"""


def find_refusal(chosen: Learning, strategy: str, default: Learning) -> str:
    """Return an error message about the first option that is unsupported or has no effect. Return an empty
    string if all options are correct.

    ``default`` contains the trainer's default settings. If an option has its default value, the user did not
    choose this value, so toolkit accepts the option even if it has no effect.
    """
    for one in REFUSALS:
        if getattr(chosen, one.name) == one.value and strategy in one.strategies:
            return f"{one.option} and --strategy {strategy}: {one.why}"
    return _refuse_combination(chosen) or _idle(chosen, default)


def find_framework_refusal(trainer: "Trainer", options: "Options") -> str:
    """Return an error message about an option that the strategy's framework does not support. Return an empty
    string if the framework supports all options.
    """
    strategy = options.strategy
    framework = STRATEGIES[strategy].framework
    if framework not in trainer.frameworks:
        title = framework_named(framework).TITLE
        others = " or ".join(strategies_of(trainer.frameworks[0])[:2])
        return f"--strategy {strategy}: {trainer.name} has no model in {title}; use --strategy {others}"
    if framework == "tensorflow":
        return ""
    if not options.batch_size:
        return (
            f"--batch-size auto and --strategy {strategy}: only TensorFlow tries batch sizes; give a number"
        )
    if options.tensorboard:
        why = "only TensorFlow writes TensorBoard's files; read metrics.jsonl instead"
        return f"--tensorboard and --strategy {strategy}: {why}"
    return ""


def _refuse_combination(chosen: Learning) -> str:
    if chosen.sync_batch_norm and chosen.xla == "on":
        return (
            "--xla on and --sync-batch-norm: cannot be combined, because XLA cannot compile messages "
            "between ranks; choose one"
        )
    if chosen.sync_batch_norm and chosen.accumulate > 1:
        return (
            "--accumulate and --sync-batch-norm: cannot be combined, because some ranks may accumulate "
            "fewer batches in the last step; choose one"
        )
    return ""


def _idle(chosen: Learning, default: Learning) -> str:
    for name, other, values in _ONLY:
        value = getattr(chosen, other)
        if getattr(chosen, name) != getattr(default, name) and value not in values:
            return f"{_flag(name)}: only for {_flag(other)} {' or '.join(values)}, not for {value}"
    if chosen.warmup_from != default.warmup_from and not chosen.warmup_epochs:
        return "--warmup-from needs a warm-up; add --warmup-epochs"
    return ""


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
