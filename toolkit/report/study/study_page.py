"""Format a scaling study as one HTML page. The page contains the plots, and needs neither scripts nor other
files. All functions in this module are pure.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from toolkit.number import number
from toolkit.report.study.page_frame import environment_table, html_page
from toolkit.report.study.plot_style import color
from toolkit.report.study.study_plots import Plot
from toolkit.report.study.study_tables import SizeRow, rows
from toolkit.study.limits import duration, percent
from toolkit.study.report import Report

_HEAD = (
    "ranks",
    "nodes",
    "s/{work}",
    "{unit}/s",
    "speed-up",
    "effici&shy;ency",
    "communi&shy;cation",
    "waiting for samples",
)

_OVER_SMALLEST = (4, 5)
"""Indices in ``_HEAD`` of the columns that the page omits if every series has a single number of ranks."""

_NONE = "&ndash;"
_MOST = 8
"""Maximum number of lines in a list of failed or missing runs. The last line may say "and N more"."""

_METHOD = """\
<section><h2>How to read this page</h2>
<p>An epoch is one pass over the training data. Speed-up and efficiency compare each number of ranks with
the smallest number of ranks in the same series. By definition, the efficiency on the smallest number is
100 %. The model of the time on <i>n</i> ranks is {models}. <i>P</i> is the time of the work that
the ranks share. <i>K</i> is the time of the work that every rank repeats. The last term is the time of
the ring allreduce: {factors}. toolkit repeats the fit many times with random changes of the measured
times. Each repetition keeps every combination of terms that fits nearly as well as the best combination.
The range of a prediction contains 95 % of the times that these fits predict.</p></section>"""


def page(report: Report, plots: Sequence[Plot]) -> str:
    """Return the HTML page about a report with its plots."""
    title = f"Scaling of {escape(report.title)}"
    body = [
        f"<header><h1>{title}</h1>{_lead(report)}</header>",
        _words(report),
        '<section class="plots" aria-label="Plots">',
        *(_figure(plot) for plot in plots),
        "</section>",
        _figures(report),
        _missing(report),
        _environment(report),
        _method(report),
    ]
    return html_page(title, body)


def _lead(report: Report) -> str:
    cards = []
    for place, line in enumerate(report.lines):
        largest = line.curve.points[-1]
        ranks = f"{largest.ranks} rank{'s' * (largest.ranks > 1)}"
        nodes = f"{largest.nodes} node{'s' * (largest.nodes > 1)}"
        on = f"on {ranks}, {nodes}"
        reached, figure = f"per {escape(line.work)} {on}", duration(largest.seconds.value)
        if largest is not line.curve.base:
            reached = f"speed-up {on}; efficiency {100 * largest.efficiency.value:.0f} %"
            figure = f"{largest.speedup.value:.2f}&times;"
        cards.append(
            f'<div class="card" style="border-color: {color(place)}"><span>{escape(line.label)}</span>'
            f"<b>{figure}</b><span>{reached}</span></div>"
        )
    return f'<div class="cards">{"".join(cards)}</div>'


def _words(report: Report) -> str:
    verdicts = "".join(f"<p>{escape(text)}</p>" for text in report.verdicts)
    parts = []
    for line in report.lines:
        if not line.sentences:
            continue
        name = f"<h3>{escape(line.label)}</h3>" if len(report.lines) > 1 else ""
        items = "".join(f"<li>{escape(text)}</li>" for text in line.sentences)
        parts.append(f"<div>{name}<ul>{items}</ul></div>")
    return f'<section><h2>Conclusions</h2>{verdicts}<div class="beside">{"".join(parts)}</div></section>'


def _figure(plot: Plot) -> str:
    # Remove the fixed size of the SVG, so that the plot fills the width of its column.
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", plot.svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", svg, count=1)
    name = escape(plot.title, quote=True)
    return f'<figure id="{plot.name}" role="img" aria-label="{name}">{_own(svg, plot.name)}</figure>'


def _own(svg: str, name: str) -> str:
    """Add the prefix ``name`` to each id in an SVG and to each reference to an id. The prefix keeps the ids
    of several SVGs on the page different.
    """
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    return re.sub(r'href="#', f'href="#{name}-', svg)


def _figures(report: Report) -> str:
    size_rows = rows(report)
    cells = {id(row): _cells(row) for row in size_rows}
    # Leave out the table columns that have no value in any row.
    idle = _OVER_SMALLEST if all(len(line.curve.points) == 1 for line in report.lines) else ()
    columns = [i for i in range(len(_HEAD)) if i not in idle and any(c[i] != _NONE for c in cells.values())]
    head = "".join(
        f"<th>{_HEAD[i].format(unit=escape(report.units), work=escape(report.work))}</th>" for i in columns
    )
    parts = ['<section><h2>Figures</h2><div class="beside tables">']
    for line in report.lines:
        name = f"<caption>{escape(line.label)}</caption>" if len(report.lines) > 1 else ""
        body = "".join(
            f'<tr class="{row.kind}">{"".join(f"<td>{cells[id(row)][i]}</td>" for i in columns)}</tr>'
            for row in size_rows
            if row.series == line.label
        )
        table = f"<table>{name}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        parts.append(f'<div class="wide">{table}</div>')
    note = "<p>Values are medians. The numbers in small print are the minimum and the maximum of all runs."
    if any(row.kind == "predicted" for row in size_rows):
        note += (
            " Rows in italics are predictions. In these rows, the numbers in small print are the limits "
            "that should contain 95 of 100 measurements."
        )
    return "\n".join([*parts, f"</div>{note}</p></section>"])


def _cells(row: SizeRow) -> list[str]:
    single, rate = row.runs == 1, _NONE
    if row.rate is not None and row.rate_low is not None and row.rate_high is not None:
        rate = _with_range(row.rate, row.rate_low, row.rate_high, number, exact=single)
    exact = row.speedup_low == row.speedup_high
    return [
        str(row.ranks),
        "" if row.nodes is None else str(row.nodes),
        _with_range(row.seconds, row.seconds_low, row.seconds_high, number, exact=single),
        rate,
        _with_range(row.speedup, row.speedup_low, row.speedup_high, "{:.2f}".format, exact=exact),
        f"{100 * row.efficiency:.0f} %",
        _NONE if row.communication is None else f"{100 * row.communication:.0f} %",
        _NONE if not row.waiting else percent(row.waiting),
    ]


def _with_range(value: float, low: float, high: float, form: Callable[[float], str], *, exact: bool) -> str:
    return form(value) + ("" if exact else f"<small>{form(low)} &ndash; {form(high)}</small>")


def _missing(report: Report) -> str:
    if not report.failures and not report.missing:
        return ""
    failed = _list(report.failures, "These runs failed and are not in the tables and plots:")
    later = _list(report.missing, "These runs are not measured yet:")
    return f"<section><h2>Missing runs</h2>{failed}{later}</section>"


def _list(texts: Iterable[str], title: str) -> str:
    items = [escape(text) for text in texts]
    if len(items) > _MOST:
        items[_MOST - 1 :] = [f"and {len(items) - _MOST + 1} more"]
    return f"<p>{title}</p><ul><li>{'</li><li>'.join(items)}</li></ul>" if items else ""


def _environment(report: Report) -> str:
    parts = ["<section><h2>Environment</h2>"]
    for name, values in report.environment:
        if len(report.environment) > 1:
            parts.append(f"<h3>{escape(name)}</h3>")
        parts.append(environment_table(values))
    return "\n".join([*parts, "</section>"])


def _method(report: Report) -> str:
    models = {
        "weak": "<i>P/n + K + W&middot;2(n&minus;1)/n<sup>2</sup></i> if the global batch "
        "grows with <i>n</i>",
        "strong": "<i>P/n + K + L&middot;2(n&minus;1)</i> if the global batch has a constant size",
    }
    factors = {
        "weak": "<i>W</i> is the cost of limited network bandwidth",
        "strong": "<i>L</i> is the cost of network latency",
    }
    kinds = sorted({line.curve.scaling for line in report.lines})
    return _METHOD.format(
        models=" and ".join(models[kind] for kind in kinds),
        factors=", and ".join(factors[kind] for kind in kinds),
    )
