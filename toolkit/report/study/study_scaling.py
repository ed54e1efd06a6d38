"""Draw the plots of a scaling study: time, rate, speed-up and efficiency against the number of ranks."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.report.study.plot_style import GREY, PALE, PREDICTION_DASHES, color, legend, marker
from toolkit.study.fit import further
from toolkit.study.report import Report, ReportCurve
from toolkit.study.statistics import MeasuredPoint, MedianSpread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHORT = 8.0
"""A logarithmic axis is short if its highest value is less than 8 times its lowest value. On a short axis,
toolkit puts more labels between two powers of ten than on a long axis.
"""

Value = Callable[[MeasuredPoint], MedianSpread | None]


def times(axes: "Axes", report: Report) -> None:
    for number, line in enumerate(report.lines):
        _draw_measured(axes, line, number, lambda point: point.seconds)
        _draw_predicted(axes, line, number, lambda fit, n: fit.seconds(n))
    for line in report.lines:
        base = line.curve.base
        _ideal(axes, report, lambda n, base=base: base.seconds.value * base.ranks / n)
    axes.set_yscale("log")
    _ranks(axes, report)
    _plain_numbers(axes)


def rates(axes: "Axes", report: Report) -> None:
    for number, line in enumerate(report.lines):
        base = line.curve.base
        if base.rate:
            _draw_measured(axes, line, number, lambda point: point.rate)
            work = base.rate.value * base.seconds.value
            _draw_predicted(axes, line, number, lambda fit, n, work=work: _inverse(fit.seconds(n), work))
            _ideal(axes, report, lambda n, base=base: base.rate.value / base.ranks * n)
    axes.set_yscale("log")
    _ranks(axes, report)
    _plain_numbers(axes)


def speedup(axes: "Axes", report: Report) -> None:
    for number, line in enumerate(report.lines):
        _draw_measured(axes, line, number, lambda point: point.speedup)
        _draw_predicted(axes, line, number, lambda fit, n: fit.speedup(n))
    _ideal(axes, report, lambda n: n)
    axes.set_yscale("log", base=2)
    _ranks(axes, report)
    _plain_numbers(axes, 2.0)


def efficiency(axes: "Axes", report: Report) -> None:
    from matplotlib.ticker import PercentFormatter

    for number, line in enumerate(report.lines):
        _draw_measured(axes, line, number, lambda point: point.efficiency)
        _draw_predicted(axes, line, number, lambda fit, n: _inverse(fit.speedup(n), None, n))
    _ideal(axes, report, lambda _: 1.0)
    # Extend the axis beyond 100 %, because the error bar of an efficiency may exceed 100 %.
    # An error bar is long if runs with the same number of ranks take very different times.
    measured = [point.efficiency.high for line in report.lines for point in line.curve.points]
    axes.set_ylim(0, 1.1 * max(1.0, *measured))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    _ranks(axes, report)


def _draw_measured(axes: "Axes", line: ReportCurve, number: int, value: Value) -> None:
    points = [(point.ranks, value(point)) for point in line.curve.points]
    measured = [(ranks, spread) for ranks, spread in points if spread]
    ys = [spread.value for _, spread in measured]
    errors = [[s.value - s.low for _, s in measured], [s.high - s.value for _, s in measured]]
    axes.errorbar(
        [ranks for ranks, _ in measured],
        ys,
        yerr=errors,
        color=color(number),
        marker=marker(number),
        markersize=6,
        linewidth=1.8,
        capsize=3,
        label=line.label,
        zorder=4,
    )


def _draw_predicted(axes: "Axes", line: ReportCurve, number: int, value: Callable[..., MedianSpread]) -> None:
    if line.fit is None or not further(line.curve):
        return
    sizes = [line.curve.points[-1].ranks, *further(line.curve)[:2]]
    predictions = [value(line.fit, n) for n in sizes]
    lows, highs = [s.low for s in predictions], [s.high for s in predictions]
    axes.fill_between(sizes, lows, highs, color=color(number), alpha=0.13, linewidth=0, zorder=1)
    # Draw predictions as hollow markers and dashed lines, so that they do not look like measurements.
    axes.plot(
        sizes[1:],
        [s.value for s in predictions[1:]],
        linestyle="",
        marker=marker(number),
        markerfacecolor="white",
        color=color(number),
        zorder=3,
    )
    axes.plot(
        sizes,
        [s.value for s in predictions],
        linestyle=PREDICTION_DASHES,
        linewidth=1.3,
        color=color(number),
        zorder=2,
    )


def _ideal(axes: "Axes", report: Report, value: Callable[..., float]) -> None:
    sizes = _sizes(report)
    named = any(line.get_label() == "ideal" for line in axes.get_lines())
    axes.plot(
        sizes,
        [value(n) for n in sizes],
        color=GREY,
        linestyle=":",
        linewidth=1.4,
        label=None if named else "ideal",
        zorder=1,
    )


def _sizes(report: Report) -> list[int]:
    """Return the numbers of ranks to label on the axis: all measured numbers, and from each curve, the two
    smallest numbers that have predictions.
    """
    rank_counts = {point.ranks for line in report.lines for point in line.curve.points}
    rank_counts |= {n for line in report.lines if line.fit for n in further(line.curve)[:2]}
    return sorted(rank_counts)


def _ranks(axes: "Axes", report: Report) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(_sizes(report)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    axes.set_xlabel("ranks")
    axes.grid(color=PALE, linewidth=0.7)
    axes.set_axisbelow(True)
    legend(axes, with_predictions=any(line.fit and further(line.curve) for line in report.lines))


def _plain_numbers(axes: "Axes", base: float = 10.0) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axes.get_ylim()
    # On an axis with a small range, labels at powers of two alone would be too few.
    base = 10.0 if high / low < _SHORT else base
    subs = [1.0, 2.0, 5.0]
    if high / low < _SHORT:
        subs = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0]
    elif base == 2 or high / low > 1000:
        subs = [1.0]
    axes.yaxis.set_major_locator(LogLocator(base=base, subs=subs))
    axes.yaxis.set_minor_locator(LogLocator(base=base, subs=range(2, 10)) if base == 10 else NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(which="minor", axis="y", color=PALE, linewidth=0.4)
    axes.set_ylabel("logarithmic scale", color=GREY, fontsize=9)
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}")
    )


def _inverse(spread: MedianSpread, work: float | None, ranks: float = 1) -> MedianSpread:
    """Convert the times of an epoch to rates. ``work`` is the number of units, such as images, in an epoch.
    If ``work`` is ``None``, convert the speed-ups of ``ranks`` ranks to efficiencies.
    """
    if work is None:
        return MedianSpread(spread.value / ranks, spread.low / ranks, spread.high / ranks)
    return MedianSpread(work / spread.value, work / spread.high, work / spread.low)
