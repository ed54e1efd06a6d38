"""Define the colours, the markers and the legend of plots of studies."""

from typing import TYPE_CHECKING, Any

from toolkit import DISTRIBUTION
from toolkit.errors import Missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colour-blind readers can distinguish these colours of Okabe and Ito. Markers distinguish the lines as well.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# There are eight markers and seven colours, so a pair of marker and colour repeats only after 56 lines.
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<")
GREY, PALE = "#5F5F5F", "#DDDDDD"
PREDICTION_DASHES = (0, (4, 3))
"""matplotlib's dash pattern for a line of predictions: lengths relative to the line's width."""


def without_matplotlib(subject: str, option: str) -> Missing:
    """Return the exception to raise if matplotlib is missing.

    ``subject`` is the beginning of the message: what toolkit cannot draw, and a verb, such as "the plots
    are". ``option`` is the command-line option that writes a report without plots.
    """
    return Missing(
        f"{subject} left out: matplotlib is not installed",
        fix=f"install matplotlib in toolkit's own environment: `pip install '{DISTRIBUTION}[plot]'`, or "
        f"run `toolkit report` with {option}",
    )


def color(number: int) -> str:
    """Return the colour of the line with this number; the colours repeat after seven lines."""
    return _COLORS[number % len(_COLORS)]


def marker(number: int) -> str:
    return _MARKERS[number % len(_MARKERS)]


def legend(axes: "Axes", *, with_predictions: bool = False) -> None:
    """Put the legend below the plot, so that the legend covers no data.

    If ``with_predictions`` is true, add an entry for the predictions.
    """
    from matplotlib.lines import Line2D

    handles, labels = axes.get_legend_handles_labels()
    if with_predictions:
        handles.append(
            Line2D([], [], color=GREY, linestyle=PREDICTION_DASHES, marker="o", markerfacecolor="white")
        )
        labels.append("predicted, 95 %")
    figure: Any = axes.get_figure()
    figure.legend(handles, labels, loc="outside lower left", ncols=2, frameon=False, fontsize=10)
