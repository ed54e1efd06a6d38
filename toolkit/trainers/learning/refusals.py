"""Refuse options that a strategy does not support or that have no effect, before a trainer loads TensorFlow.

The table "Options of each strategy" in ``docs/strategies.md`` contains every option in :data:`REFUSALS`. A
test compares the table with the code.
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
    """An unsupported option: ``strategies`` do not support the value ``value`` of the option ``name``. The
    error message contains ``reason``.
    """

    name: str
    value: str | bool
    strategies: tuple[str, ...]
    reason: str

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
        "this strategy cannot normalise over all devices; use --strategy horovod, mirrored or multiworker",
    ),
    Refusal(
        "xla",
        "on",
        ("ps",),
        "XLA cannot compile code that reads variables from parameter servers; leave out the option --xla",
    ),
    Refusal(
        "mixed_precision",
        "float16",
        ("ps",),
        "the workers cannot agree on a loss scaling factor; use --mixed-precision bfloat16",
    ),
    Refusal(
        "sync_batch_norm",
        True,
        _JAX,
        "JAX trainers always normalise over all devices; leave out the option --sync-batch-norm",
    ),
    Refusal("xla", "on", _JAX, "JAX always compiles every step with XLA; leave out the option --xla"),
    Refusal("xla", "on", _TORCH, "toolkit does not compile PyTorch with XLA; leave out the option --xla"),
    *(
        Refusal(
            "mixed_precision",
            kind,
            rows,
            f"toolkit's {title} models compute only in float32; leave out the option --mixed-precision",
        )
        for title, rows in (("PyTorch", _TORCH), ("JAX", _JAX))
        for kind in ("float16", "bfloat16")
    ),
    *(
        Refusal(
            "optimizer", name, rows, f"{title} trainers have no such optimizer; use --optimizer sgd or adam"
        )
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
"""Options that have an effect only with certain values of a second option. Each entry contains the name of
the option, the name of the second option, and these values of the second option.
"""


def find_refusal(learning: Learning, strategy: str, default: Learning) -> str:
    """Return an error message about an option that ``strategy`` does not support or that has no effect.
    Return an empty string if there is no such option.

    ``default`` contains the trainer's default settings. If an option has its default value, toolkit accepts
    the option even if it has no effect, because the user may not have set it.
    """
    for one in REFUSALS:
        if getattr(learning, one.name) == one.value and strategy in one.strategies:
            return f"{one.option} and --strategy {strategy}: {one.reason}"
    return _refuse_combination(learning) or _idle(learning, default)


def find_framework_refusal(trainer: "Trainer", options: "Options") -> str:
    """Return an error message if the trainer has no model for the strategy's framework, or if the framework
    does not support an option. Otherwise, return an empty string.
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
            f"--batch-size auto and --strategy {strategy}: only TensorFlow trainers choose a batch size; "
            "use --batch-size N"
        )
    if options.tensorboard:
        why = "only TensorFlow trainers write TensorBoard files; leave out --tensorboard, read metrics.jsonl"
        return f"--tensorboard and --strategy {strategy}: {why}"
    return ""


def _refuse_combination(learning: Learning) -> str:
    if learning.sync_batch_norm and learning.xla == "on":
        return (
            "--xla on and --sync-batch-norm: cannot be combined, because XLA cannot compile messages "
            "between ranks; leave out one of them"
        )
    if learning.sync_batch_norm and learning.accumulate > 1:
        return (
            "--accumulate and --sync-batch-norm: cannot be combined, because some ranks may accumulate "
            "fewer batches in the last step of an epoch; leave out one of them"
        )
    return ""


def _idle(learning: Learning, default: Learning) -> str:
    for name, other, values in _ONLY:
        value = getattr(learning, other)
        if getattr(learning, name) != getattr(default, name) and value not in values:
            return f"{_flag(name)}: only for {_flag(other)} {' or '.join(values)}, not for {value}"
    if learning.warmup_from != default.warmup_from and not learning.warmup_epochs:
        return "--warmup-from needs a warm-up; add --warmup-epochs"
    return ""


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
