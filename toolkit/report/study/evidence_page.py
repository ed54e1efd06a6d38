"""Format the scaling evidence for a computing centre's application form as text, as JSON and as an HTML page
(pure functions).
"""

import re
import textwrap
from collections.abc import Sequence
from html import escape

import msgspec

from toolkit.number import number
from toolkit.report.plain import one_line
from toolkit.report.study.page_frame import environment_table, html_page
from toolkit.report.table import table
from toolkit.study.evidence import FormDemand, NodeRow, Series
from toolkit.study.forms import Form
from toolkit.study.limits import duration
from toolkit.study.report import Report

_STYLE = """\
pre { overflow-x: auto; font-size: 0.8rem; background: #8881; padding: 0.7rem; }
.met::before { content: "\\2713\\00a0"; }
.unmet::before { content: "\\2717\\00a0"; }
.unmet { font-weight: 600; }
ul.demands { list-style: none; padding-left: 0; }
"""

_NONE = "-"


def text_of(form: Form, report: Report, series_list: Sequence[Series], width: int = 100) -> str:
    """Return the evidence as text for a terminal of ``width`` characters."""
    parts = [f"{form.title}\n{textwrap.fill(one_line(form.source), width, break_long_words=False)}"]
    for series in series_list:
        title = f"{one_line(series.label)}\n" if series.label else ""
        parts.append(title + table(_titles(report), [_cells(row) for row in series.rows]))
        parts.append("\n".join(line for demand in series.demands for line in _demand_lines(demand, width)))
    if form.text:
        lines = [
            textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    ") for text in form.text
        ]
        parts.append("\n".join(["Texts that you must write:", *lines]))
    return "\n\n".join(parts)


def json_of(form: Form, series_list: Sequence[Series]) -> bytes:
    """Return the evidence as JSON (schema ``toolkit.evidence/1``)."""
    return msgspec.json.encode({"schema": "toolkit.evidence/1", "form": form.name, "series": series_list})


def page(form: Form, report: Report, series_list: Sequence[Series], script: str) -> str:
    """Return an HTML page with the measured values, a list of the texts that the applicant must write, the
    environment and the job script.
    """
    title = escape(form.title)
    source = escape(form.source)
    body = [f"<header><h1>{title}</h1><p>Source of the form: {source}</p></header>"]
    body += [_section(report, series) for series in series_list]
    if form.text:
        items = "".join(f"<li>{escape(text)}</li>" for text in form.text)
        body.append(f"<section><h2>To be written by the applicant</h2><ul>{items}</ul></section>")
    for _, values in report.environment:
        body.append(f"<section><h2>Environment</h2>{environment_table(values)}</section>")
    if script:
        heading = "Job script of the largest run that has a saved script"
        body.append(f"<section><h2>{heading}</h2><pre>{escape(script)}</pre></section>")
    return html_page(title, body, _STYLE)


def _section(report: Report, series: Series) -> str:
    heading = escape(series.label) or "Scaling"
    head = "".join(f"<th>{escape(text)}</th>" for text in _titles(report))
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in series.rows
    )
    demands = "".join(
        f'<li class="{"met" if demand.met else "unmet"}">{_marked(_sentence(demand))}</li>'
        for demand in series.demands
    )
    return (
        f'<section><h2>{heading}</h2><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div><p>Times are medians of all runs. Speed-up and efficiency are "
        f"relative to the job on the fewest nodes.</p><h3>What the form asks for</h3>"
        f'<ul class="demands">{demands}</ul></section>'
    )


def _marked(text: str) -> str:
    """Return a text as HTML, with words between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _titles(report: Report) -> list[str]:
    return [
        "nodes",
        "ranks",
        "runs",
        f"s/{report.work}",
        "wall time of the job",
        "speed-up",
        "efficiency",
        "GPU utilisation",
    ]


def _cells(row: NodeRow) -> list[str]:
    return [
        str(row.nodes),
        str(row.ranks),
        str(row.runs),
        number(row.seconds.value, 4),
        _NONE if row.wall is None else duration(row.wall),
        f"{row.speedup:.2f}",
        f"{100 * row.efficiency:.0f} %",
        _NONE if row.gpu is None else f"{100 * row.gpu:.0f} %",
    ]


def _sentence(demand: FormDemand) -> str:
    return f"{demand.text}. {demand.fix[0].upper()}{demand.fix[1:]}." if demand.fix else demand.text


def _demand_lines(demand: FormDemand, width: int) -> list[str]:
    mark = "✔ " if demand.met else "✗ "
    return textwrap.wrap(_sentence(demand), width, initial_indent=mark, subsequent_indent="  ")
