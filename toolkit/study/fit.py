"""Fit the model to a curve, predict further sizes with their uncertainty, and check a prediction; pure.

The uncertainty covers 95 of 100 draws: each varies the measured times within their errors, fits again, and
keeps every choice of terms that fits nearly as well as the best, because the figures do not decide between
them. A prediction is for a future measurement, so the error of that measurement is included.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from toolkit.model.study import Scaling
from toolkit.study.model import Vector, seconds, solutions
from toolkit.study.statistics import Curve, Measured, MedianSpread

_DRAWS = 200
_LEAST_ERROR = 0.01
"""Least relative error of times on real machines, even if three runs differ less by chance."""
_SINGLE_ERROR = 0.03
"""Relative error of a size that ran once, if no other size ran more often."""
_MEDIAN = math.sqrt(math.pi / 2)
"""Factor by which a median is less certain than a mean, for normal errors."""
_NEARLY = 2.0
"""Chi squared by which a choice of terms may be worse than the best."""
_BYTES = 4
"""Bytes of one parameter's gradient, a float32."""
_SEED = 20261121


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted model of one curve; ``weights`` are P, K and W or L of :mod:`toolkit.study.model`."""

    scaling: Scaling
    weights: Vector
    draws: tuple[tuple[float, Vector], ...]
    base_ranks: int

    def seconds(self, ranks: float) -> MedianSpread:
        """Return the predicted time of an epoch on this many ranks."""
        noise = random.Random(_SEED + round(ranks * 1000))  # noqa: S311 - not for secrets
        told = sorted(
            seconds(self.scaling, weights, ranks) * max(1 + error * noise.gauss(), 0.1)
            for error, weights in self.draws
        )
        value = seconds(self.scaling, self.weights, ranks)
        low, high = _middle_range(told)
        return MedianSpread(value, min(low, value), max(high, value))

    def speedup(self, ranks: float) -> MedianSpread:
        """Return the predicted speed-up over one rank, or over the smallest size."""
        base = seconds(self.scaling, self.weights, self.base_ranks) * self.base_ranks
        time = self.seconds(ranks)
        return MedianSpread(base / time.value, base / time.high, base / time.low)

    @property
    def serial(self) -> MedianSpread:
        """Return the part of one rank's epoch that more ranks do not shorten."""
        parts = sorted(_serial(weights) for _, weights in self.draws)
        low, high = _middle_range(parts)
        value = _serial(self.weights)
        return MedianSpread(value, min(low, value), max(high, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCheck:
    """A fit without the largest size, compared with the measurement at that size."""

    ranks: int
    predicted: MedianSpread
    measured: float

    @property
    def holds(self) -> bool:
        return self.predicted.low <= self.measured <= self.predicted.high


def fit(curve: Curve) -> Fit | None:
    """Fit the model; ``None`` for a curve of one size."""
    return _fit(curve.scaling, curve.points)


def check(curve: Curve) -> FitCheck | None:
    """Predict the largest size from the others; ``None`` for fewer than three sizes."""
    if len(curve.points) < 3:
        return None
    *others, largest = curve.points
    made = _fit(curve.scaling, others)
    if made is None:
        return None
    return FitCheck(
        ranks=largest.ranks, predicted=made.seconds(largest.ranks), measured=largest.seconds.value
    )


def further(curve: Curve) -> tuple[int, ...]:
    """Return the sizes to predict: two, four and eight times the largest.

    With only two sizes there are none, because two sizes do not separate serial work from communication.
    """
    if len(curve.points) < 3:
        return ()
    largest = curve.points[-1].ranks
    return (2 * largest, 4 * largest, 8 * largest)


def bandwidth(curve: Curve, made: Fit) -> float | None:
    """Return the bandwidth of the gradients in bytes per second, by the model; ``None`` if it is not
    determined.
    """
    parameters, steps = curve.base.figures.parameters, curve.steps
    if curve.scaling != "weak" or not parameters or not steps or made.weights[2] <= 0:
        return None
    return parameters * _BYTES * steps / made.weights[2]


def latency(curve: Curve, made: Fit) -> float | None:
    """Return the seconds of one exchange by the model, for batches that are divided among ranks."""
    steps = curve.steps
    if curve.scaling != "strong" or not steps or made.weights[2] <= 0:
        return None
    return made.weights[2] / steps


def _fit(scaling: Scaling, points: Sequence[Measured]) -> Fit | None:
    ranks = [point.ranks for point in points]
    if len(set(ranks)) < 2:
        return None
    times = [point.seconds.value for point in points]
    single = _single_error(points)
    errors = [_error(point, single) for point in points]
    best, weights = solutions(scaling, ranks, times, [t * e for t, e in zip(times, errors, strict=True)])[0]
    freedom = len(points) - sum(weight > 0 for weight in weights)
    # If times are further from the model than their errors allow, the errors are larger.
    factor = max(1.0, math.sqrt(best / freedom)) if freedom > 0 else 1.0
    draws = _draws(scaling, ranks, times, [error * factor for error in errors])
    # One more run, which a prediction is compared with, has the error of the typical size.
    typical = median(errors) * factor
    return Fit(
        scaling=scaling,
        weights=weights,
        draws=tuple((typical, draw) for draw in draws),
        base_ranks=ranks[0],
    )


def _draws(
    scaling: Scaling, ranks: Sequence[int], times: Sequence[float], errors: Sequence[float]
) -> list[Vector]:
    chance = random.Random(_SEED)  # noqa: S311 - equal figures shall give equal reports
    found = []
    for _ in range(_DRAWS):
        drawn = [t * max(1 + e * chance.gauss(), 0.1) for t, e in zip(times, errors, strict=True)]
        told = solutions(scaling, ranks, drawn, [t * e for t, e in zip(times, errors, strict=True)])
        limit = told[0][0] + _NEARLY
        found += [weights for chi, weights in told if chi <= limit]
    return found


def _single_error(points: Sequence[Measured]) -> float:
    """Return the relative error of one run, from all sizes that ran more than once."""
    squares, freedom = 0.0, 0
    for point in points:
        if len(point.runs) > 1:
            mean = sum(point.runs) / len(point.runs)
            squares += sum((run / mean - 1) ** 2 for run in point.runs)
            freedom += len(point.runs) - 1
    if not freedom:
        return _SINGLE_ERROR
    # A spread from few runs may be larger than it looks; this is close to Student's t.
    return max(math.sqrt(squares / freedom) * (1 + 2 / freedom), _LEAST_ERROR)


def _error(point: Measured, single: float) -> float:
    rounding = point.figures.resolution / math.sqrt(12) / point.seconds.value
    count = len(point.runs)
    return math.hypot(single / math.sqrt(count) * (_MEDIAN if count > 2 else 1.0), rounding)


def _middle_range(told: Sequence[float]) -> tuple[float, float]:
    return told[round(0.025 * (len(told) - 1))], told[round(0.975 * (len(told) - 1))]


def _serial(weights: Vector) -> float:
    parallel, serial, _ = weights
    return serial / (parallel + serial) if serial else 0.0
