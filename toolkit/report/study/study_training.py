"""Draw the plots about the trainings of a study: the phases of a training step, and the accuracy."""

from typing import TYPE_CHECKING

from toolkit.model.study import EpochFigure
from toolkit.report.study.plot_style import PALE, color, legend, marker
from toolkit.study.report import Report, ReportCurve
from toolkit.study.statistics import MeasuredPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PHASES = (
    ("reduce", "allreduce", "#0072B2", ""),
    ("copy", "copying", "#56B4E9", "//"),
    ("queue", "queueing", "#CC79A7", ".."),
    ("negotiate", "waiting for other ranks", "#E69F00", "\\\\"),
    ("input", "waiting for samples", "#009E73", "xx"),
    ("compute", "computation", "#CCCCCC", ""),
)
_MOST = 6
"""Maximum number of accuracy curves that a reader can distinguish in one plot."""


def phases(axes: "Axes", report: Report) -> None:
    from matplotlib.ticker import PercentFormatter

    bars = [(line, p, p.parts) for line in report.lines for p in line.curve.points if p.parts]
    names = [", ".join(filter(None, (line.series, _size_label(point)))) for line, point, _ in bars]
    left = [0.0] * len(bars)
    for field, label, shade, hatch in _PHASES:
        parts = [shares.get(field, 0.0) for _, _, shares in bars]
        if not any(parts):
            continue
        axes.barh(
            names,
            parts,
            left=left,
            color=shade,
            hatch=hatch,
            label=label,
            edgecolor="white",
            height=0.6,
            zorder=3,
        )
        left = [a + b for a, b in zip(left, parts, strict=True)]
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("fraction of a step, on rank 0")
    legend(axes)


def by_samples(axes: "Axes", report: Report) -> None:
    _accuracy(axes, report, "samples")


def by_time(axes: "Axes", report: Report) -> None:
    _accuracy(axes, report, "seconds")


def _accuracy(axes: "Axes", report: Report, quantity: str) -> None:
    from matplotlib.ticker import MaxNLocator

    number = 0
    for line, points in _chosen(report):
        for point in points:
            scores = accuracies(point)
            xs, done = [], 0.0
            for epoch, _ in scores:
                done += epoch.images if quantity == "samples" else epoch.seconds
                xs.append(done)
            label = ", ".join(filter(None, (line.series, _size_label(point))))
            axes.plot(
                xs,
                [accuracy for _, accuracy in scores],
                color=color(number),
                marker=marker(number),
                linewidth=1.8,
                label=label,
                zorder=3,
            )
            number += 1
    axes.set_xlabel("samples, all ranks" if quantity == "samples" else "seconds, without evaluation")
    axes.grid(color=PALE, linewidth=0.7)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 10 else f"{value:g}")
    legend(axes)


def _chosen(report: Report) -> list[tuple[ReportCurve, list[MeasuredPoint]]]:
    """Return each curve with the points whose accuracy the plot shows. If the plot cannot show all points of
    a curve, return the points with the fewest ranks and the point with the most ranks.
    """
    most = max(2, _MOST // len(report.lines))
    drawn: list[object] = []
    chosen = []
    for line in report.lines:
        # Several curves may start with the same training on the fewest ranks; draw this training only once.
        known = [p for p in line.curve.points if accuracies(p) and p.epochs not in drawn]
        points = known if len(known) <= most else [*known[: most - 1], known[-1]]
        drawn += [point.epochs for point in points]
        chosen.append((line, points))
    return chosen


def _size_label(point: MeasuredPoint) -> str:
    return f"{point.ranks} rank{'s' * (point.ranks > 1)} on {point.nodes} node{'s' * (point.nodes > 1)}"


def accuracies(point: MeasuredPoint) -> list[tuple[EpochFigure, float]]:
    return [(epoch, epoch.test_accuracy) for epoch in point.epochs if epoch.test_accuracy is not None]
