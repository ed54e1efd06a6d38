"""Compute curves from the runs of a study: medians with ranges, speed-up and efficiency (pure functions).

A series is the set of all runs with one value of ``--compare``. A size is a number of ranks on a number of
nodes. The time of a run is the median time of the run's epochs. The time of a size is the median time of all
runs of this size. The range of this time extends from the fastest to the slowest run.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from toolkit.model.study import EpochFigure, Figures, Point, Scaling, Shares, Study


@dataclass(frozen=True, slots=True)
class MedianSpread:
    """A median, and the range from the smallest to the largest value."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "MedianSpread":
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """The measurements of a curve for one size: one number of ranks on one number of nodes.

    ``runs`` has the seconds per epoch of each run. ``speedup`` compares this size with the smallest size of
    the curve. If the smallest size has N ranks, its speed-up is N by definition. A size that takes half the
    time of the smallest size has a speed-up of 2 N. ``efficiency`` is the speed-up divided by the number of
    ranks. ``waiting`` is the fraction of an epoch, from 0 to 1, during which a rank waits for training
    samples, or ``None`` if unknown.
    """

    ranks: int
    nodes: int
    runs: tuple[float, ...]
    seconds: MedianSpread
    rate: MedianSpread | None
    speedup: MedianSpread
    efficiency: MedianSpread
    shares: Shares | None
    epochs: tuple[EpochFigure, ...]
    figures: Figures
    waiting: float | None = None

    @property
    def parts(self) -> dict[str, float] | None:
        """The fraction of a training step's time in each phase, or ``None`` if unknown. The fractions of all
        phases add up to 1.

        A timeline counts the wait for training samples as computation. This property subtracts the wait from
        the phase ``compute``, and reports the wait as the phase ``input``.
        """
        waiting = self.waiting or 0.0
        if self.shares is None:
            return {"compute": 1 - waiting, "input": waiting} if self.ranks == 1 and self.waiting else None
        waiting = min(waiting, self.shares.compute)
        parts = {name: getattr(self.shares, name) for name in ("reduce", "copy", "queue", "negotiate")}
        return {**parts, "input": waiting, "compute": self.shares.compute - waiting}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The measured points of one series of runs, sorted by the number of ranks.

    If the series has one curve for each number of nodes, ``node_label`` is a text such as "on 2 nodes". If
    the series has only one curve, ``node_label`` is empty.
    """

    series: str
    node_label: str
    scaling: Scaling
    points: tuple[MeasuredPoint, ...]

    @property
    def base(self) -> MeasuredPoint:
        return self.points[0]

    @property
    def steps(self) -> float | None:
        """The number of steps of an epoch on one rank, or None if unknown."""
        figures = self.base.figures
        if not figures.samples or not figures.global_batch:
            return None
        batch = figures.global_batch / (self.base.ranks if self.scaling == "weak" else 1)
        return figures.samples / batch


def curves(study: Study, points: Iterable[Point]) -> list[Curve]:
    """Return a curve for each series. If a series ran the same number of ranks on several numbers of nodes,
    return a curve for each number of nodes.

    All curves of a series start with the smallest size of the series. Therefore, a curve for 4 nodes may
    start with a size on 1 node.
    """
    known = list(points)
    measured_curves = []
    for series in study.values or ("",):
        mine = [point for point in known if point.series == series]
        sizes = {point.size for point in mine}
        several = len({size.ranks for size in sizes}) < len(sizes)
        base = min(sizes, default=None)
        for nodes in sorted({size.nodes for size in sizes}) if several else [0]:
            chosen = [p for p in mine if not nodes or p.nodes == nodes or p.size == base]
            on = f"on {nodes} node{'s' if nodes > 1 else ''}" if nodes else ""
            if curve := _curve(series, on, study.scaling, chosen):
                measured_curves.append(curve)
    return measured_curves


def _curve(series: str, node_label: str, scaling: Scaling, points: Sequence[Point]) -> Curve | None:
    groups: dict[tuple[int, int], list[Point]] = {}
    for point in sorted(points, key=lambda p: (p.ranks, p.nodes, p.number)):
        if point.figures and not point.profile:
            groups.setdefault((point.ranks, point.nodes), []).append(point)
    if not groups:
        return None
    shares = {(p.ranks, p.nodes): p.shares for p in points if p.shares}
    first = next(iter(groups))
    base = MedianSpread.of(_seconds(groups[first]))
    measured = tuple(
        _measured_point(group, first[0], base, shares.get(size)) for size, group in groups.items()
    )
    return Curve(series=series, node_label=node_label, scaling=scaling, points=measured)


def _measured_point(
    group: Sequence[Point], base_ranks: int, base: MedianSpread, shares: Shares | None
) -> MeasuredPoint:
    sample, runs = group[0], _seconds(group)
    figures = [point.figures for point in group if point.figures]
    waiting = [run.waiting for run in figures if run.waiting is not None]
    seconds = MedianSpread.of(runs)
    rates = [median(run.rates) for run in figures if run.rates]
    speedup = _speedup(seconds, base, base_ranks, same_ranks=sample.ranks == base_ranks)
    part = 1 / sample.ranks
    return MeasuredPoint(
        ranks=sample.ranks,
        nodes=sample.nodes,
        runs=tuple(runs),
        seconds=seconds,
        rate=MedianSpread.of(rates) if rates else None,
        speedup=speedup,
        efficiency=MedianSpread(speedup.value * part, speedup.low * part, speedup.high * part),
        shares=shares,
        epochs=_typical(figures).epochs,
        figures=figures[0],
        waiting=median(waiting) if waiting else None,
    )


def _speedup(seconds: MedianSpread, base: MedianSpread, ranks: int, *, same_ranks: bool) -> MedianSpread:
    """Return the speed-up of a size, whose time is ``seconds``. ``base`` is the time of the smallest size,
    and ``ranks`` is the number of ranks of the smallest size. ``same_ranks`` is true if both sizes have the
    same number of ranks.

    The range of the speed-up assumes that the errors of the two times are independent.
    """
    if same_ranks and seconds == base:
        return MedianSpread(ranks, ranks, ranks)
    value = ranks * base.value / seconds.value
    down = math.hypot(seconds.high / seconds.value - 1, 1 - base.low / base.value)
    up = math.hypot(1 - seconds.low / seconds.value, base.high / base.value - 1)
    return MedianSpread(value, value / (1 + down), value * (1 + up))


def _seconds(group: Iterable[Point]) -> list[float]:
    return [median(point.figures.seconds) for point in group if point.figures]


def _typical(figures: Sequence[Figures]) -> Figures:
    """Return the measured values of the run with the median time. If the number of runs is even, use the
    faster of the two middle runs.
    """
    return sorted(figures, key=lambda run: median(run.seconds))[(len(figures) - 1) // 2]
