"""Draw the time to the first step over the number of nodes."""

from pathlib import Path
from typing import Any

_GREY = "#444444"
_LINES = {
    "venv": ("virtual environment, shared", "#d55e00", "-", "replayed"),
    "conda": ("conda-like tree, shared", "#cc79a7", "--", "replayed"),
    "sif": ("SIF, shared", "#e69f00", "-", "replayed"),
    "env": ("environment file, shared", "#009e73", "-", "replayed"),
    "sif-copy": ("SIF, copy on each node", "#222222", "--", "sent"),
    "env-copy": ("environment file, copy on each node", "#0072b2", "-", "sent"),
}
"""Colours of Okabe and Ito, which colour-blind readers can distinguish."""


def draw(found: dict[str, Any], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "toolkit"
    plt.rcParams.update({"font.size": 9, "text.color": _GREY, "axes.labelcolor": _GREY})
    servers = ("1", "16")
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained", sharey=True)
    for axes, threads in zip(panels, servers, strict=True):
        _panel(axes, found, threads)
    panels[0].set_ylabel("seconds to the first step")
    panels[0].legend(frameon=False, fontsize=8, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _panel(axes: Any, found: dict[str, Any], threads: str) -> None:
    for place, (label, colour, dash, kind) in _LINES.items():
        given = found[place][kind]
        points = {int(n): seconds for n, seconds in (given[threads] if kind == "replayed" else given).items()}
        axes.plot(list(points), list(points.values()), dash, color=colour, linewidth=1.6, label=label)
    nodes = list(points)
    axes.set(xscale="log", yscale="log", xlabel="nodes", xlim=(0.9, 72))
    axes.set_title(f"{int(threads) * 1000:,} operations on names a second", fontsize=9)
    axes.set_xticks(nodes, [str(n) for n in nodes])
    axes.set_yticks([3, 10, 30, 100, 300], ["3", "10", "30", "100", "300"])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.tick_params(colors=_GREY)
