"""Command-line options of a trainer for the learning rate, the optimizer and the training step."""

import argparse
from collections.abc import Callable
from typing import Any, get_args

from toolkit.trainers.learning import precision
from toolkit.trainers.learning.optimizers import NAMES
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.learning.rates import FACTORS, Decay, Scaling
from toolkit.trainers.words import count, positive


def not_negative(text: str) -> float:
    """Return the number in ``text``. Raise ``ArgumentTypeError`` if the number is negative or not finite."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{value} is not a finite number of at least 0")
    return value


def share(text: str) -> float:
    """Return the number in ``text``. Raise ``ArgumentTypeError`` if the number is below 0 or at least 1."""
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a number from 0 to below 1")
    return value


def epochs(text: str) -> tuple[float, ...]:
    """Parse a list of epochs. Raise ``ArgumentTypeError`` if an epoch is not later than the epoch before it.

    >>> epochs("30,60,80")
    (30.0, 60.0, 80.0)
    """
    found = tuple(positive(word) for word in text.split(","))
    if sorted(set(found)) != list(found):
        raise argparse.ArgumentTypeError(f"{text}: each epoch must be later than the epoch before it")
    return found


def add_options(learning: Learning, parser: argparse.ArgumentParser) -> None:
    """Add the learning options to ``parser``, with the values of ``learning`` as defaults."""
    rates = parser.add_argument_group("learning rate").add_argument
    _add_rate(learning, rates)
    _add_warmup(learning, rates)
    _add_decay(learning, rates)
    _add_optimizer(learning, parser)
    _add_steps(learning, parser)


def _add_rate(learning: Learning, rates: Callable[..., Any]) -> None:
    """Add the options for the learning rate and its scaling."""
    rates(
        "--learning-rate",
        type=positive,
        default=learning.learning_rate,
        metavar="RATE",
        help="learning rate for updates with --reference-batch samples; --scaling adapts it to more samples",
    )
    rates(
        "--reference-batch",
        type=count,
        default=learning.reference_batch,
        metavar="N",
        help=(
            "total number of samples per update, over all ranks, for which you chose --learning-rate; "
            "0: the value of --batch-size or, with auto, the trainer's default batch size"
        ),
    )
    rates(
        "--scaling",
        choices=get_args(Scaling),
        default=learning.scaling,
        help=(
            "Q is the number of samples in an update divided by --reference-batch; linear: multiply "
            "--learning-rate by Q; sqrt: multiply it by the square root of Q; none: keep it unchanged"
        ),
    )


def _add_warmup(learning: Learning, rates: Callable[..., Any]) -> None:
    """Add the options for the warm-up, in which the learning rate rises."""
    rates(
        "--warmup-epochs",
        type=not_negative,
        default=learning.warmup_epochs,
        metavar="E",
        help="length of the warm-up in epochs; in the warm-up, the learning rate rises with each step",
    )
    rates(
        "--warmup-from",
        type=not_negative,
        default=learning.warmup_from,
        metavar="RATE",
        help=(
            "learning rate at the start of the warm-up; without this option, the lower of two rates: "
            "--learning-rate and the scaled rate"
        ),
    )


def _add_decay(learning: Learning, rates: Callable[..., Any]) -> None:
    """Add the options for the decay of the learning rate after the warm-up."""
    rates(
        "--decay",
        choices=get_args(Decay),
        default=learning.decay,
        help="how the learning rate falls after the warm-up; constant: the rate does not fall",
    )
    rates(
        "--decay-at",
        type=epochs,
        default=learning.decay_at,
        metavar="E,E",
        help="epochs at which --decay step lowers the rate; without this option, 1/3, 2/3, 8/9 of all epochs",
    )
    rates(
        "--decay-factor",
        type=positive,
        default=learning.decay_factor,
        metavar="F",
        help=(
            "factor of --decay step or exponential; step: multiply the rate by F at each epoch in the list "
            "--decay-at; exponential: multiply the rate by F in each epoch after the warm-up; "
            f"default 0: F is {FACTORS['step']} for step, {FACTORS['exponential']} for exponential"
        ),
    )
    rates(
        "--decay-power",
        type=positive,
        default=learning.decay_power,
        metavar="P",
        help="exponent of --decay polynomial",
    )
    rates(
        "--decay-to",
        type=share,
        default=learning.decay_to,
        metavar="SHARE",
        help="last rate of --decay cosine or polynomial, as a fraction of the rate after the warm-up",
    )


def _add_optimizer(learning: Learning, parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("optimizer").add_argument
    add(
        "--optimizer",
        choices=NAMES,
        default=learning.optimizer,
        help="optimizer that updates the model; lars and lamb are for large batches",
    )
    add("--momentum", type=share, default=learning.momentum, metavar="M", help="momentum of SGD and LARS")
    yes_or_no = argparse.BooleanOptionalAction
    add("--nesterov", action=yes_or_no, default=learning.nesterov, help="use Nesterov momentum in SGD")
    add(
        "--momentum-correction",
        action=yes_or_no,
        default=learning.momentum_correction,
        help="if the learning rate changes, multiply SGD's velocity by the new rate divided by the old rate",
    )
    add(
        "--weight-decay",
        type=not_negative,
        default=learning.weight_decay,
        metavar="W",
        help="weight decay of all parameters except biases and the parameters of normalisations",
    )
    add("--trust", type=positive, default=learning.trust, metavar="T", help="trust coefficient of LARS")


def _add_steps(learning: Learning, parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("training step").add_argument
    add(
        "--accumulate",
        type=count,
        default=learning.accumulate,
        metavar="N",
        help="number of batches that each device processes for one update of the model",
    )
    add(
        "--compression",
        choices=("none", "fp16"),
        default=learning.compression,
        help="number format in which ranks send gradients; fp16: float16; none: the format of the gradients",
    )
    add(
        "--label-smoothing",
        type=share,
        default=learning.label_smoothing,
        metavar="SHARE",
        help="part (0 to below 1) of the target probability that label smoothing spreads over all classes",
    )
    add(
        "--mixed-precision",
        choices=get_args(precision.Mixed),
        default=learning.mixed_precision,
        help="number format in which layers compute; off: float32; weights are always float32",
    )
    add(
        "--xla",
        choices=("auto", "on", "off"),
        default=learning.xla,
        help="compile the forward and backward pass with XLA; auto: same as off",
    )
    add(
        "--sync-batch-norm",
        action=argparse.BooleanOptionalAction,
        default=learning.sync_batch_norm,
        help="in batch normalisation, use the mean and variance over the batches of all devices",
    )
