"""Read the figures of a run from its output: a trainer's metrics, or the output of any command; pure."""

import itertools
import re
from collections.abc import Iterable, Sequence
from statistics import median

from toolkit.errors import BadInput, CheckFailed
from toolkit.knowledge.trainers import trainers
from toolkit.model.metrics import Epoch, MetricsHeader, parse_metrics
from toolkit.model.study import EpochFigure, Figures

UNITS = 1000
"""If the size of the data is unknown, the time of this many units stands for an epoch."""

_LABEL = re.compile(r"^ *(\d+): ")
"""The prefix of ``srun --label`` before a line."""

_BEGUN = re.compile(r"^job: \d+, \d+ ranks? on .*$", re.MULTILINE)
"""The first line of a job script's output: repeated in the same file if Slurm starts the job again."""


def of_metrics(content: bytes, warm_up: int, ranks: int) -> Figures:
    """Return the figures of a training of ``ranks``; the time of an epoch is for one pass over the data.

    Raises:
        CheckFailed: if no epoch is left after the warm-up, or the training was resumed from a checkpoint,
            did not finish, or had another number of ranks.
    """
    if not content:
        raise CheckFailed("the run wrote no metrics")
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
            f"the run finished {len(epochs)} epochs, but the first {warm_up} are left out as warm-up"
        )
    return Figures(
        seconds=tuple(one.seconds * header.samples / one.images for one in measured),
        rates=tuple(one.images / one.seconds for one in measured),
        epochs=tuple(
            EpochFigure(seconds=one.seconds, images=one.images, test_accuracy=one.test_accuracy)
            for one in epochs
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
    """Refuse figures of a world of another size than requested, for example if every rank trained alone."""
    if header.strategy in trainers().strategies.apart or header.world_size == ranks:
        return
    raise CheckFailed(
        f"the study requested {ranks} rank{'s' if ranks > 1 else ''}, but the training had "
        f"{header.world_size}: strategy {header.strategy} does not use all ranks, or ranks do not find each "
        "other",
        fix="run `toolkit doctor IMAGE`, which names a launch mode that works",
    )


def _waiting(epochs: Sequence[Epoch]) -> float | None:
    parts = [one.input_seconds / one.seconds for one in epochs if one.input_seconds is not None]
    return min(median(parts), 1.0) if parts else None


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that finds figures.

    Raises:
        BadInput: if the text is not a pattern, or has no group.
    """
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise BadInput(f"--pattern {pattern!r}: {error}") from None
    if not found.groups:
        raise BadInput(
            f"--pattern {pattern!r}: put parentheses around the figure", fix="as in 'images/sec: ([0-9.]+)'"
        )
    return found


def of_output(texts: Iterable[str], pattern: str, warm_up: int) -> Figures:
    """Return the figures that a pattern finds in the lines of rank 0: its first group, or a named one.

    ``texts`` are the output in order, cut at ends of lines. A group ``(?P<seconds>…)`` holds the time of an
    epoch, ``(?P<rate>…)`` or any other group units per second. Output from before Slurm restarted the job
    belongs to an interrupted run and is ignored.

    Raises:
        CheckFailed: if the pattern finds nothing, nothing after the warm-up, or a text that is not a number.
    """
    rule = compile_pattern(pattern)
    group: str | int = next((name for name in ("seconds", "rate") if name in rule.groupindex), 1)
    told: list[str] = []
    for line in itertools.chain.from_iterable(text.splitlines() for text in texts):
        if _BEGUN.match(line):
            told = []
        elif _of_first(line):
            told += [found[group] for found in rule.finditer(line)]
    if not told:
        raise CheckFailed(f"--pattern {pattern!r} finds nothing in its output")
    values = [_number(value, pattern) for value in told][warm_up:]
    if not values:
        raise CheckFailed(
            f"--pattern {pattern!r} finds {len(told)} figures, but {warm_up} are left out as warm-up",
            fix="`--warm-up 0` uses all figures",
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
        raise CheckFailed(f"--pattern {pattern!r} finds {text}, which is neither a time nor a speed")
    return value
