"""Fit the scaling model to the measured times of a curve, predict times on more ranks with their uncertainty,
and check the predictions (pure functions).

To find the uncertainty of a prediction, toolkit repeats the fit many times. In each repetition, called a
draw, toolkit changes each measured time by a random error and fits the model again. A fit may leave out terms
of the model. The measurements cannot decide between choices of terms that fit nearly equally well. Therefore,
each draw keeps all choices that fit nearly as well as the best choice. The range of a prediction contains
95 % of the times that these fits predict. Users compare a prediction with a future run, so the range also
allows for the measurement error of that run.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from toolkit.model.study import Scaling
from toolkit.study.model import Vector, seconds, solutions
from toolkit.study.statistics import Curve, MeasuredPoint, MedianSpread

_DRAWS = 200
_LEAST_ERROR = 0.01
"""The minimum relative error that toolkit assumes for a measured time. By chance, the times of
three runs can differ by less than this error.
"""
_SINGLE_ERROR = 0.03
"""The relative error that toolkit assumes for a time if the study ran each number of ranks only once."""
_MEDIAN = math.sqrt(math.pi / 2)
"""The error of a median divided by the error of a mean, for normally distributed values."""
_NEARLY = 2.0
"""toolkit keeps a choice of the model's terms if its chi squared is at most 2 above the best chi squared."""
_BYTES = 4
"""The size in bytes of one parameter's gradient (float32)."""
_SEED = 20261121


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The scaling model, fitted to one curve.

    ``weights`` are the model's three fitted factors. :mod:`toolkit.study.model` calls them ``P``, ``K`` and
    ``W`` for weak scaling, and ``P``, ``K`` and ``L`` for strong scaling. ``base_ranks`` is the smallest
    measured number of ranks.

    toolkit repeats the fit with randomly changed times, and ``draws`` has an entry for each fit that toolkit
    keeps: the typical relative error of a run, and the fitted factors.
    """

    scaling: Scaling
    weights: Vector
    draws: tuple[tuple[float, Vector], ...]
    base_ranks: int

    def seconds(self, ranks: float) -> MedianSpread:
        """Return the predicted time in seconds of an epoch on ``ranks`` ranks."""
        noise = random.Random(_SEED + round(ranks * 1000))  # noqa: S311 - not for secrets
        values = sorted(
            seconds(self.scaling, weights, ranks) * max(1 + error * noise.gauss(), 0.1)
            for error, weights in self.draws
        )
        value = seconds(self.scaling, self.weights, ranks)
        low, high = _middle_range(values)
        return MedianSpread(value, min(low, value), max(high, value))

    def speedup(self, ranks: float) -> MedianSpread:
        """Return the predicted speed-up over one rank. The estimated time on one rank is the fitted time on
        ``base_ranks`` ranks, multiplied by ``base_ranks``.
        """
        base = seconds(self.scaling, self.weights, self.base_ranks) * self.base_ranks
        time = self.seconds(ranks)
        return MedianSpread(base / time.value, base / time.high, base / time.low)

    @property
    def serial(self) -> MedianSpread:
        """Return the serial fraction of the epoch time on one rank, from 0 to 1. More ranks do not reduce the
        serial time.
        """
        parts = sorted(_serial(weights) for _, weights in self.draws)
        low, high = _middle_range(parts)
        value = _serial(self.weights)
        return MedianSpread(value, min(low, value), max(high, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCheck:
    """A check of the model: the predicted and the measured time in seconds on the largest number of ranks.

    The prediction uses only the times on fewer ranks.
    """

    ranks: int
    prediction: MedianSpread
    measurement: float

    @property
    def holds(self) -> bool:
        return self.prediction.low <= self.measurement <= self.prediction.high


def fit(curve: Curve) -> Fit | None:
    """Fit the scaling model to all points of a curve. Return ``None`` if all points have the same number of
    ranks.
    """
    return _fit(curve.scaling, curve.points)


def check(curve: Curve) -> FitCheck | None:
    """Predict the time on the largest number of ranks from the points with fewer ranks. Return ``None`` for a
    curve of fewer than three points, or if all points except the last have the same number of ranks.
    """
    if len(curve.points) < 3:
        return None
    *smaller, largest = curve.points
    model = _fit(curve.scaling, smaller)
    if model is None:
        return None
    return FitCheck(
        ranks=largest.ranks, prediction=model.seconds(largest.ranks), measurement=largest.seconds.value
    )


def further(curve: Curve) -> tuple[int, ...]:
    """Return the numbers of ranks for which the report predicts times: two, four and eight times the largest
    measured number.

    The result is empty for a curve of fewer than three points, because two points cannot separate serial work
    from communication.
    """
    if len(curve.points) < 3:
        return ()
    largest = curve.points[-1].ranks
    return (2 * largest, 4 * largest, 8 * largest)


def bandwidth(curve: Curve, model: Fit) -> float | None:
    """Return the bandwidth in bytes per second with which ranks exchange gradients, according to the model.
    Return ``None`` for strong scaling, or if the measured values do not determine the bandwidth.
    """
    parameters, steps = curve.base.figures.parameters, curve.steps
    if curve.scaling != "weak" or not parameters or not steps or model.weights[2] <= 0:
        return None
    return parameters * _BYTES * steps / model.weights[2]


def latency(curve: Curve, model: Fit) -> float | None:
    """Return the time in seconds of one exchange in a ring allreduce, according to the model. Return ``None``
    for weak scaling, or if the measured values do not determine the time.
    """
    steps = curve.steps
    if curve.scaling != "strong" or not steps or model.weights[2] <= 0:
        return None
    return model.weights[2] / steps


def _fit(scaling: Scaling, points: Sequence[MeasuredPoint]) -> Fit | None:
    ranks = [point.ranks for point in points]
    if len(set(ranks)) < 2:
        return None
    times = [point.seconds.value for point in points]
    single = _single_error(points)
    errors = [_error(point, single) for point in points]
    best, weights = solutions(scaling, ranks, times, [t * e for t, e in zip(times, errors, strict=True)])[0]
    freedom = len(points) - sum(weight > 0 for weight in weights)
    # If the measured times differ from the fitted times by more than the errors, increase the errors.
    factor = max(1.0, math.sqrt(best / freedom)) if freedom > 0 else 1.0
    draws = _draws(scaling, ranks, times, [error * factor for error in errors])
    # Users compare a prediction with a future run, so include the typical error of a run in the prediction.
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
    chance = random.Random(_SEED)  # noqa: S311 - the fixed seed gives equal reports
    draws = []
    for _ in range(_DRAWS):
        drawn = [t * max(1 + e * chance.gauss(), 0.1) for t, e in zip(times, errors, strict=True)]
        fits = solutions(scaling, ranks, drawn, [t * e for t, e in zip(times, errors, strict=True)])
        limit = fits[0][0] + _NEARLY
        draws += [weights for chi, weights in fits if chi <= limit]
    return draws


def _single_error(points: Sequence[MeasuredPoint]) -> float:
    """Return the relative error of the time of one run. toolkit estimates this error from the points with
    more than one run. If there are no such points, return ``_SINGLE_ERROR``.
    """
    squares, freedom = 0.0, 0
    for point in points:
        if len(point.runs) > 1:
            mean = sum(point.runs) / len(point.runs)
            squares += sum((run / mean - 1) ** 2 for run in point.runs)
            freedom += len(point.runs) - 1
    if not freedom:
        return _SINGLE_ERROR
    # With few runs, increase the error approximately as Student's t-distribution does.
    return max(math.sqrt(squares / freedom) * (1 + 2 / freedom), _LEAST_ERROR)


def _error(point: MeasuredPoint, run_error: float) -> float:
    rounding = point.figures.resolution / math.sqrt(12) / point.seconds.value
    count = len(point.runs)
    return math.hypot(run_error / math.sqrt(count) * (_MEDIAN if count > 2 else 1.0), rounding)


def _middle_range(values: Sequence[float]) -> tuple[float, float]:
    return values[round(0.025 * (len(values) - 1))], values[round(0.975 * (len(values) - 1))]


def _serial(weights: Vector) -> float:
    parallel, serial, _ = weights
    return serial / (parallel + serial) if serial else 0.0
