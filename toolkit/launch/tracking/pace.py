"""Compute the progress and the remaining time of a training from its metrics."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.model.metrics import Count, Measure
from toolkit.number import number

_RECENT = 3
"""toolkit predicts the remaining time from the mean duration of this number of recent epochs."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The progress of a training: the number of complete epochs, and the number of all epochs.

    ``images_per_second`` is the speed of the last complete epoch, or 0 during the first epoch.
    ``seconds_left`` is the predicted time of the remaining epochs, without the time for validation, or
    ``None`` during the first epoch. ``resumes`` is the number of times that the training resumed from a
    checkpoint.
    """

    complete_epochs: int
    epochs: int
    images_per_second: float
    seconds_left: float | None
    resumes: int = 0


class _Line(msgspec.Struct):
    record: str = ""
    epochs: Count = 0
    epoch: Count = 0
    seconds: Measure = 0.0
    images_per_second: Measure = 0.0


def pace(metrics: bytes) -> Pace | None:
    """Return the progress of a training from the content of its metrics file.

    The result is ``None`` if the content has no header line with the number of epochs. The function ignores
    lines that it cannot decode, such as an incomplete last line.
    """
    lines = [line for text in metrics.splitlines() if (line := _line(text)) is not None]
    headers = [line for line in lines if line.record == "header"]
    if not headers or headers[-1].epochs < 1:
        return None
    done = [line for line in lines if line.record == "epoch"]
    return Pace(
        complete_epochs=len(done),
        epochs=headers[-1].epochs,
        images_per_second=done[-1].images_per_second if done else 0.0,
        seconds_left=_seconds_left([line.seconds for line in done], headers[-1].epochs),
        resumes=sum(line.record == "resumed" for line in lines),
    )


def _line(text: bytes) -> _Line | None:
    try:
        return msgspec.json.decode(text, type=_Line)
    except DECODE_ERRORS:
        return None


def _seconds_left(seconds: Sequence[float], epochs: int) -> float | None:
    if not seconds:
        return None
    recent = seconds[-_RECENT:]
    return max(epochs - len(seconds), 0) * sum(recent) / len(recent)


def describe_pace(progress: Pace, seconds: float = 0.0) -> str:
    """Return the progress as text, for example ``epoch 3 of 12, 4,321 images/s, about 2 min left``.

    ``seconds`` is the time since the end of the last complete epoch, in seconds.
    """
    if progress.complete_epochs >= progress.epochs:
        parts = [f"{progress.complete_epochs} of {progress.epochs} epochs are done"]
    else:
        parts = [f"epoch {progress.complete_epochs + 1} of {progress.epochs}"]
    if progress.images_per_second:
        parts.append(f"{number(progress.images_per_second)} images/s")
    if progress.seconds_left is not None and progress.complete_epochs < progress.epochs:
        parts.append(f"about {duration(max(progress.seconds_left - seconds, 0.0))} left")
    if progress.resumes:
        parts.append(f"resumed {progress.resumes} time{'s' if progress.resumes > 1 else ''}")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a duration as text: ``45 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
