"""Draw the loss of the first epochs, and the test accuracy after each epoch."""

from pathlib import Path
from typing import Any

_GREY = "#444444"
_COLOURS = ("#222222", "#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""A dark grey, and four colours of Okabe and Ito, which colour-blind readers can distinguish."""

_DASHES = ("-", "--", ":", "-", "-.")
_TOP = 12.0


def draw(curves: list[dict[str, Any]], path: Path) -> None:
    """Draw for each recipe the median of its seeds as a line, and the range of its seeds as a band."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "toolkit"
    plt.rcParams.update({"font.size": 9, "text.color": _GREY, "axes.labelcolor": _GREY})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    names = list(dict.fromkeys(one["name"] for one in curves))
    for name, colour, dash in zip(names, _COLOURS, _DASHES, strict=False):
        ours = [one for one in curves if one["name"] == name]
        points = [[at for at, _ in one["curve"]] for one in ours]
        losses = [[min(loss, _TOP) for _, loss in one["curve"]] for one in ours]
        _line(left, points[0], losses, colour, dash, name)
        tests = [one["tests"] for one in ours]
        _line(right, range(1, 1 + len(tests[0])), tests, colour, dash, name)
    left.set(xlabel="epochs", ylabel="training loss", yscale="log", xlim=(0, 4), ylim=(0.02, _TOP))
    left.set_yticks([0.02, 0.1, 0.5, 2, 10], ["0.02", "0.1", "0.5", "2", "10"])
    left.minorticks_off()
    right.set(xlabel="epochs", ylabel="test accuracy", xlim=(1, 8), ylim=(0.8, 1.0))
    right.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.02), fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.6)
        axes.tick_params(colors=_GREY)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _line(axes: Any, points: Any, many: list[list[float]], colour: str, dash: str, name: str) -> None:
    columns = [sorted(column) for column in zip(*many, strict=False)]
    middle = [column[len(column) // 2] for column in columns]
    at = list(points)[: len(middle)]
    axes.fill_between(at, [one[0] for one in columns], [one[-1] for one in columns], color=colour, alpha=0.15)
    axes.plot(at, middle, dash, color=colour, linewidth=1.6, label=name)
