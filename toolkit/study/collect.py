"""Read the measured values of a run from a trainer's metrics or from a command's output (pure functions)."""

import itertools
import re
from collections.abc import Iterable, Sequence
from statistics import median

from toolkit.errors import BadInput, CheckFailed
from toolkit.knowledge.trainers import trainers
from toolkit.model.metrics import Epoch, MetricsHeader, parse_metrics
from toolkit.model.study import EpochFigure, Figures

UNITS = 1000
"""If a run prints only a rate, toolkit reports the time of this many units of work, such as images, instead
of the time of an epoch.
"""

_LABEL = re.compile(r"^ *(\d+): ")
"""A pattern for the prefix that ``srun --label`` adds to a line: the rank's number."""

_BEGUN = re.compile(r"^job: \d+, \d+ ranks? on .*$", re.MULTILINE)
"""A pattern for the first line of a job's output. If Slurm restarts a job, Slurm appends the output of the
new run to the file, so the file then contains this line again.
"""


def of_metrics(content: bytes, warm_up: int, ranks: int) -> Figures:
    """Return the measured values of a training on ``ranks`` ranks. If each rank trains on all data, one epoch
    contains as many passes over the data as there are ranks. Each time in ``Figures.seconds`` is the time of
    one pass.

    ``content`` is the content of the trainer's metrics file. ``warm_up`` is the number of epochs to ignore at
    the start.

    Raises:
        CheckFailed: if the training did not finish, was resumed from a checkpoint, has no epoch after the
            warm-up, or had a number of ranks other than ``ranks``.
    """
    if not content:
        raise CheckFailed("the run wrote no metrics; read its output with `toolkit jobs logs`")
    training = parse_metrics(content)
    header, epochs = training.header, training.epochs
    if training.resumed:
        raise CheckFailed(
            "the run was stopped and resumed from a checkpoint, so its epochs are from two jobs"
        )
    if not training.complete:
        raise CheckFailed("the metrics have no result: the training did not finish")
    _check_size(header, ranks)
    measured = epochs[warm_up:]
    if not measured:
        raise CheckFailed(
            f"the run finished {len(epochs)} epochs, but toolkit leaves out the first {warm_up} as warm-up"
        )
    return Figures(
        seconds=tuple(epoch.seconds * header.samples / epoch.images for epoch in measured),
        rates=tuple(epoch.images / epoch.seconds for epoch in measured),
        epochs=tuple(
            EpochFigure(seconds=epoch.seconds, images=epoch.images, test_accuracy=epoch.test_accuracy)
            for epoch in epochs
        ),
        samples=header.samples,
        global_batch=header.global_batch_size,
        parameters=header.parameters,
        threads=header.threads,
        start_seconds=header.start_seconds,
        versions=header.versions,
        waiting=_waiting(measured),
    )


def _check_size(header: MetricsHeader, ranks: int) -> None:
    """Raise ``CheckFailed`` if the training did not have the number of ranks that the study requested.

    The function does not check the parameter server strategy ``ps``: its coordinator always reports one rank.
    """
    if header.strategy in trainers().strategies.apart or header.world_size == ranks:
        return
    raise CheckFailed(
        f"the study requested {ranks} rank{'s' if ranks > 1 else ''}, but the training had "
        f"{header.world_size}: strategy {header.strategy} does not use all ranks, or ranks do not find each "
        "other",
        fix="run `toolkit doctor IMAGE`, which names a launch mode that works",
    )


def _waiting(epochs: Sequence[Epoch]) -> float | None:
    parts = [epoch.input_seconds / epoch.seconds for epoch in epochs if epoch.input_seconds is not None]
    return min(median(parts), 1.0) if parts else None


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile the regular expression of ``--pattern``, which finds measured values in the output of a run.

    Raises:
        BadInput: if the regular expression is invalid, or has no group.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise BadInput(f"--pattern {pattern!r}: {error}") from None
    if not compiled.groups:
        raise BadInput(
            f"--pattern {pattern!r}: no part of the pattern is in parentheses",
            fix="put parentheses around the part that matches the number, as in 'images/sec: ([0-9.]+)'",
        )
    return compiled


def of_output(texts: Iterable[str], pattern: str, warm_up: int) -> Figures:
    """Return the measured values that a regular expression finds in the output of rank 0.

    ``texts`` yields the output in parts, in order. Each part ends at a line break. In ``pattern``, a group
    ``(?P<seconds>…)`` matches the time of an epoch in seconds. A group ``(?P<rate>…)`` matches a rate in
    units per second. If the pattern has no group ``seconds`` and no group ``rate``, its first group matches
    the rate. If Slurm restarted the job, toolkit ignores the output before the restart, because that output
    belongs to an interrupted run.

    Raises:
        CheckFailed: if the pattern finds no value, finds no value after the warm-up, or matches text that is
            not a number.
    """
    rule = compile_pattern(pattern)
    group: str | int = next((name for name in ("seconds", "rate") if name in rule.groupindex), 1)
    figures: list[str] = []
    for line in itertools.chain.from_iterable(text.splitlines() for text in texts):
        if _BEGUN.match(line):
            figures = []
        elif _of_first(line):
            figures += [match[group] for match in rule.finditer(line)]
    if not figures:
        raise CheckFailed(
            f"--pattern {pattern!r} finds nothing in the output of the run; correct the pattern"
        )
    values = [_number(value, pattern) for value in figures][warm_up:]
    if not values:
        raise CheckFailed(
            f"--pattern {pattern!r} finds {len(figures)} values, but toolkit leaves out the first {warm_up} "
            "as warm-up",
            fix="give `--warm-up 0` to use all values, or let the program print more values",
        )
    if group == "seconds":
        return Figures(seconds=tuple(values))
    return Figures(seconds=tuple(UNITS / value for value in values), rates=tuple(values))


def _of_first(line: str) -> bool:
    label = _LABEL.match(line)
    return label is None or int(label[1]) == 0


def _number(text: str, pattern: str) -> float:
    try:
        value = float(text.replace(",", ""))
    except (ValueError, AttributeError):
        raise CheckFailed(f"--pattern {pattern!r} finds {text!r}, which is not a number") from None
    if not 0 < value < float("inf"):
        raise CheckFailed(
            f"--pattern {pattern!r} finds {text}, but a time or a speed must be a positive number"
        )
    return value
