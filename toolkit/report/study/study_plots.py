"""Draw the plots of a scaling study with matplotlib, each as SVG and as PNG."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.report.plain import make_visible
from toolkit.report.study import study_scaling, study_training
from toolkit.report.study.plot_style import GREY, without_matplotlib
from toolkit.study.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Draw = Callable[["Axes", Report], None]

_DPI = 160
_SIZE = (5.6, 4.0)
"""The width and height of a plot in inches. The HTML page scales the plot to the width of a column."""
_BARS = 6
"""Maximum number of bars in a plot of the standard height. For more bars, toolkit increases the height."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: the name of its files without the suffix, its title, its SVG and its PNG."""

    name: str
    title: str
    svg: str
    png: bytes


def plots(report: Report) -> list[Plot]:
    """Return all plots for which a report has values.

    Raises:
        Missing: if matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise without_matplotlib("the page and its plots are", "--text") from error
    settings: Any = {
        # store text as text, so that browsers can search it and screen readers can read it
        "svg.fonttype": "none",
        "text.parse_math": False,  # a dollar sign in a name is not a formula
        "font.size": 11,
        "font.family": ["DejaVu Sans", "sans-serif"],
    }
    drawn_plots = []
    with mpl.rc_context(settings):
        for name, title, draw in _kinds(report):
            with mpl.rc_context({"svg.hashsalt": name}):
                drawn_plots.append(_plot(report, name, title, draw))
    return drawn_plots


def _kinds(report: Report) -> Iterator[tuple[str, str, Draw]]:
    """Yield the name of each plot, its title, and the function that draws it."""
    work = f"an {report.work}" if report.work.startswith("epoch") else report.work
    yield "epoch-time", f"Time of {work}, seconds", study_scaling.times
    if any(len(line.curve.points) > 1 for line in report.lines):
        yield "speed-up", "Speed-up", study_scaling.speedup
        yield "efficiency", "Parallel efficiency", study_scaling.efficiency
    if any(line.curve.base.rate for line in report.lines):
        yield "throughput", f"{report.units.capitalize()} per second, all ranks", study_scaling.rates
    points = [point for line in report.lines for point in line.curve.points]
    if any(point.parts for point in points):
        yield "communication", "Phases of a training step", study_training.phases
    if any(study_training.accuracies(point) for point in points):
        yield "accuracy-samples", "Test accuracy against samples seen", study_training.by_samples
        yield "accuracy-time", "Test accuracy against time trained", study_training.by_time


def _plot(report: Report, name: str, title: str, draw: Draw) -> Plot:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    draw(axes, report)
    if (bars := len(axes.get_yticklabels())) > _BARS and draw is study_training.phases:
        figure.set_figheight(_SIZE[1] * (1 + (bars - _BARS) / _BARS / 2))
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#999999")
    axes.tick_params(colors=GREY)
    svg = _svg(figure)
    figure.set_layout_engine("none")  # the PNG keeps the layout of the SVG
    return Plot(name, title, svg, _png(figure))


def _svg(figure: "Figure") -> str:
    out = io.StringIO()
    # Do not write the date to the file, so that equal values give equal files.
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = out.getvalue()
    return make_visible(text[text.index("<svg") :])


def _png(figure: "Figure") -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    return out.getvalue()
