"""Compute the progress and the remaining time of a training from its metrics."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.model.metrics import Count, Measure
from toolkit.number import number

_RECENT = 3
"""The number of recent epochs from whose mean duration toolkit predicts the remaining time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The progress of a training: ``done`` of ``epochs`` epochs are complete.

    ``images_per_second`` is the speed of the last complete epoch, or 0 during the first epoch.
    ``seconds_left`` is the predicted time of the remaining epochs, without the time for validation, or
    ``None`` during the first epoch. ``resumed`` is the number of times that the training resumed from a
    checkpoint.
    """

    done: int
    epochs: int
    images_per_second: float
    seconds_left: float | None
    resumed: int = 0


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
        done=len(done),
        epochs=headers[-1].epochs,
        images_per_second=done[-1].images_per_second if done else 0.0,
        seconds_left=_seconds_left([line.seconds for line in done], headers[-1].epochs),
        resumed=sum(line.record == "resumed" for line in lines),
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


def describe_pace(now: Pace, since: float = 0.0) -> str:
    """Return the progress as text, for example ``epoch 3 of 12, 4,321 images/s, about 2 min left``.

    ``since`` is the time since the end of the last complete epoch, in seconds.
    """
    if now.done >= now.epochs:
        parts = [f"{now.done} of {now.epochs} epochs are done"]
    else:
        parts = [f"epoch {now.done + 1} of {now.epochs}"]
    if now.images_per_second:
        parts.append(f"{number(now.images_per_second)} images/s")
    if now.seconds_left is not None and now.done < now.epochs:
        parts.append(f"about {duration(max(now.seconds_left - since, 0.0))} left")
    if now.resumed:
        parts.append(f"resumed {now.resumed} time{'s' if now.resumed > 1 else ''}")
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
