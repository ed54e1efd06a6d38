"""Make the log lines during a long epoch. A log line shows the progress of the epoch, and the mean loss since
the previous log line.
"""

import time
from collections.abc import Callable

from toolkit.trainers.training.checkpoint import EpochPart

Clock = Callable[[], float]


class ProgressLine:
    """Makes a log line every ``seconds`` seconds. The line shows the mean loss since the previous log line,
    from the losses that rank 0 knows.
    """

    def __init__(
        self, seconds: float, epochs: int, images: int, size: int, clock: Clock = time.monotonic
    ) -> None:
        """Store the settings. ``images`` is the number of samples in an epoch. ``size`` is the number by
        which rank 0's sum of losses must be multiplied to estimate the sum over all ranks.
        """
        self._seconds, self._epochs, self._images, self._size, self._clock = (
            seconds,
            epochs,
            images,
            size,
            clock,
        )
        self._part, self._told = EpochPart(), clock()

    def begin(self, part: EpochPart) -> None:
        """Start measuring speed and loss for the next log line. ``part`` is the epoch's present progress."""
        self._part, self._told = part, self._clock()

    def line(self, number: int, part: EpochPart) -> str:
        """Return the log line for epoch ``number``, counted from 0. Return an empty string if it is too early
        for the next log line.
        """
        images, seconds = part.images - self._part.images, part.seconds - self._part.seconds
        if self._clock() - self._told < self._seconds or images <= 0 or seconds <= 0:
            return ""
        loss = (part.loss - self._part.loss) * self._size / images
        left = (self._images - part.images) * seconds / images
        self.begin(part)
        return (
            f"epoch {number + 1}/{self._epochs}  {part.images / self._images:.0%}  loss {loss:.4f}  "
            f"{images / seconds:,.0f} images/s  {_minutes(left)} left in this epoch"
        )


def _minutes(seconds: float) -> str:
    """Return a duration as text: in seconds if it is below 100 s, in minutes if it is below 1 h, or in hours
    and minutes.

    >>> _minutes(4000)
    '1 h 7 min'
    """
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
