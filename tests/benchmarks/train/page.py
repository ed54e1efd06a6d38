"""Write the performance page, from the results of one run and the template page.md."""

import re
import statistics
from pathlib import Path
from string import Template

from tests.benchmarks.tables import table
from tests.benchmarks.train.cases import ALLREDUCE
from tests.benchmarks.train.peers import PEER_COMPARISONS
from tests.benchmarks.train.result import Result

_FEW = 6
_PART = re.compile(r"<!-- (tensorflow|peers) -->\n(.*?)<!-- end -->", re.DOTALL)
_TEMPLATE = Path(__file__).with_name("page.md")


def page(found: Result, before: str = "") -> str:
    """Return the page as Markdown.

    ``found`` has new figures of TensorFlow, or of PyTorch and JAX. The other figures come from the old page
    ``before``.
    """
    kept = dict(_PART.findall(before))
    parts = {name: kept.get(name, "") for name in ("tensorflow", "peers")}
    parts["peers" if {one.ours for one in PEER_COMPARISONS} & {*found.figures} else "tensorflow"] = figures(
        found
    )
    marked = {name: f"<!-- {name} -->\n{text}<!-- end -->" for name, text in parts.items()}
    return Template(_TEMPLATE.read_text("utf-8")).substitute(marked)


def figures(found: Result) -> str:
    return f"{_when(found)}\n{_ratios(found)}\n{_figures(found)}"


def _when(found: Result) -> str:
    loads = [one.load for rows in found.figures.values() for one in rows]
    text = (
        f"Measured on {found.started[:10]} in {found.image} with {found.processors} logical CPUs; the "
        f"machine's load before each case was {min(loads):.1f} to {max(loads):.1f}.\n"
    )
    if statistics.median(loads) > found.processors + 1:
        text += "The machine had other work, so these figures say little.\n"
    return text


def _ratios(found: Result) -> str:
    rows = [("", "Speed ratio"), ("---",) * 2]
    return table(rows + [(one.title, f"{found.ratio(one):.2f}") for one in found.comparisons])


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
    return rates if len(rates) <= _FEW else [min(rates), max(rates)]
