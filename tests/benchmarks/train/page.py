"""Write the performance page, from the results of one run and the template page.md."""

import statistics
from pathlib import Path
from string import Template

from tests.benchmarks.tables import table
from tests.benchmarks.train.cases import ALLREDUCE, COMPARISONS
from tests.benchmarks.train.result import Result

_FEW = 6
_TEMPLATE = Path(__file__).with_name("page.md")


def page(found: Result) -> str:
    """Return the page as Markdown."""
    template = Template(_TEMPLATE.read_text("utf-8"))
    return template.substitute(when=_when(found), ratios=_ratios(found), figures=_figures(found))


def _when(found: Result) -> str:
    loads = [one.load for rows in found.figures.values() for one in rows]
    text = (
        f"The figures were measured on {found.started[:10]} in `{found.image}` with {found.processors} "
        f"processors; the machine's load before each case was {min(loads):.1f} to {max(loads):.1f}.\n"
    )
    if statistics.median(loads) > found.processors + 1:
        text += "The machine had other work, so these figures say little.\n"
    return text


def _ratios(found: Result) -> str:
    rows = [("", "Speed ratio"), ("---",) * 2]
    return table(rows + [(one.title, f"{found.ratio(one):.2f}") for one in COMPARISONS])


def _figures(found: Result) -> str:
    rows = [("Case", "Median", "All rounds", "Test accuracy"), ("---",) * 4]
    for name, figures in found.figures.items():
        unit, digits = ("ms", 2) if name in ALLREDUCE else ("images/s", 0 if figures[0].rate > 100 else 2)
        each = [f"{rate:,.{digits}f}" for rate in _shown([one.rate for one in figures])]
        told = ", ".join(each) if len(each) == len(figures) else f"{' to '.join(each)}, {len(figures)} turns"
        scored = dict.fromkeys(f"{one.accuracy:.4f}" for one in figures if one.accuracy is not None)
        rows.append((name, f"{found.rate(name):,.{digits}f} {unit}", told, ", ".join(scored) or "-"))
    return table(rows)


def _shown(rates: list[float]) -> list[float]:
    """Return all speeds, or only the smallest and the largest if there are many."""
    return rates if len(rates) <= _FEW else [min(rates), max(rates)]
