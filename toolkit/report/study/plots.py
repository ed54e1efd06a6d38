"""Draw the accuracy, loss and speed of a training as a PNG file with matplotlib."""

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit.number import number
from toolkit.report.plain import one_line
from toolkit.report.study.plot_style import without_matplotlib
from toolkit.report.study.training import speed, thin_epochs, title
from toolkit.study.result import Result, Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colour-blind readers can distinguish these colours of Okabe and Ito.
# Markers and dashes distinguish the lines in print without colour.
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#5F5F5F"

_DPI = 160

_DRAWN = 1000
"""If a training has more than this number of epochs, toolkit draws only some, because pixels are too few."""

_MANY = 16
"""Maximum number of epochs for which toolkit labels each epoch and bar, and draws large markers."""


def training_png(training: Training, result: Result) -> bytes:
    """Return a PNG file with three panels: accuracy, loss, and images per second in each epoch.

    Raises:
        Missing: if matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise without_matplotlib("training.png is", "--no-plot") from error
    room = ConstrainedLayoutEngine(wspace=0.06, w_pad=0.08, h_pad=0.08)
    with mpl.rc_context({"text.parse_math": False}):  # a dollar sign in a name is not a formula
        return _draw_png(Figure(figsize=(11.5, 4.2), layout=room), training, result)


def _draw_png(figure: "Figure", training: Training, result: Result) -> bytes:
    """Draw the panels on ``figure``, and return the content of the PNG file."""
    accuracy, loss, speed = figure.subplots(1, 3)
    epochs = thin_epochs(training.epochs, _DRAWN)
    numbers = [result.epoch for result in epochs]
    _lines(
        accuracy, numbers, [result.accuracy for result in epochs], [result.test_accuracy for result in epochs]
    )
    _lines(loss, numbers, [result.loss for result in epochs], [result.test_loss for result in epochs])
    _bars(speed, numbers, [result.images_per_second for result in epochs])
    loss.set_ylim(bottom=0)
    figure.legend(*accuracy.get_legend_handles_labels(), loc="upper right", ncols=2, frameon=False)
    for axes, name in ((accuracy, "Accuracy"), (loss, "Loss"), (speed, "Images per second, all ranks")):
        _dress(axes, name, numbers)
    _head(figure, result, len(epochs))
    stream = io.BytesIO()
    # Do not write matplotlib's version to the file, so that equal trainings give equal files.
    figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    return stream.getvalue()


def _lines(
    axes: "Axes", numbers: Sequence[int], training: Sequence[float | None], test: Sequence[float | None]
) -> None:
    lines = [(training, "s--", _ORANGE, "training, mean of the epoch")]
    if any(value is not None for value in test):
        lines.append((test, "o-", _BLUE, "test, after the epoch"))
    for values, style, color, name in lines:
        size = 6 if len(numbers) <= _MANY else 3
        # A value of None becomes NaN, for which matplotlib draws a gap.
        drawn = [math.nan if value is None else value for value in values]
        axes.plot(numbers, drawn, style, color=color, label=name, linewidth=2, markersize=size, zorder=3)
    values, _, color, _ = lines[-1]
    _name_last(axes, numbers[-1], values[-1], color)
    axes.margins(y=0.16)


def _name_last(axes: "Axes", number: int, value: float | None, color: str) -> None:
    """Write the last value of a curve beside the curve's last point, unless the value is unknown."""
    if value is None:
        return
    axes.annotate(
        f"{value:.4f}",
        (number, value),
        xytext=(9, 0),
        textcoords="offset points",
        va="center",
        color=color,
        fontweight="bold",
    )


def _bars(axes: "Axes", numbers: Sequence[int], speeds: Sequence[float]) -> None:
    apart = max(1, numbers[1] - numbers[0]) if len(numbers) > _MANY else 1
    bars = axes.bar(numbers, speeds, width=0.6 * apart, color=_GREEN, zorder=3)
    if len(numbers) <= _MANY:
        axes.bar_label(bars, [number(speed) for speed in speeds], padding=3, color=_GREY, fontsize=9)
    axes.margins(y=0.12)


def _dress(axes: "Axes", name: str, numbers: Sequence[int]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(name, loc="left", fontsize=11)
    axes.set_xlabel("epoch")
    # Give all three panels the same range of epochs. The added 0.6 leaves room for half a bar on each side.
    axes.set_xlim(numbers[0] - 0.6, numbers[-1] + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10], integer=True))
    if len(numbers) <= _MANY:
        axes.set_xticks(numbers)
    if "second" in name:
        axes.yaxis.set_major_formatter(lambda value, _: number(value))
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#999999")
    axes.tick_params(colors=_GREY)


def _head(figure: "Figure", result: Result, drawn_epochs: int) -> None:
    scored = "" if result.test_accuracy is None else f"test accuracy {result.test_accuracy:.4f}   "
    caption = f"{scored}{speed(result)}"
    if not result.complete:
        caption += f"   partial: {result.epochs} of {result.epochs_planned} epochs"
    if drawn_epochs < result.epochs:
        caption += f"   {drawn_epochs} of {result.epochs:,} epochs are drawn"
    figure.suptitle(f"{one_line(title(result))}\n", x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.text(0.01, 0.905, caption, ha="left", va="center", fontsize=10.5, color=_GREY)
