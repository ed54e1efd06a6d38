"""Format a scaling study for a terminal: a table with bars that show the efficiency, then the conclusions."""

import textwrap

from toolkit.number import number
from toolkit.report.plain import join_lines, one_line
from toolkit.report.study.study_tables import SizeRow, rows
from toolkit.report.table import table
from toolkit.study.report import Report

_BAR = 20
_FULL, _EMPTY = "█", "·"


def text_of(report: Report, width: int = 100) -> str:
    """Return the report as text, without the plots and the environment."""
    size_rows = rows(report)
    several = len(report.lines) > 1
    rated = any(row.rate is not None for row in size_rows)
    # A study with a single number of ranks has no speed-up.
    compared = any(len(line.curve.points) > 1 for line in report.lines)
    titles = [
        *["series"] * several, "ranks", "nodes", f"s/{report.work}", "spread", *[f"{report.units}/s"] * rated,
        *(["speed-up", "efficiency", ""] if compared else []),
    ]  # fmt: skip
    body = [
        [*[row.series] * several, *_cells(row, with_rates=rated, with_speedups=compared)] for row in size_rows
    ]
    parts = [table(titles, body)]
    if any(row.kind == "predicted" for row in size_rows):
        parts.append(
            "~ marks a prediction of the fitted model. In rows with ~, the `spread` should contain 95 of 100 "
            "measurements."
        )
    if report.verdicts:
        parts.append(
            "\n".join(textwrap.fill(text, width, subsequent_indent="  ") for text in report.verdicts)
        )
    for line in report.lines:
        if not line.sentences:
            continue
        lines = [
            textwrap.fill(text, width - 2, initial_indent="  ", subsequent_indent="    ")
            for text in line.sentences
        ]
        parts.append("\n".join([one_line(line.label), *lines]))
    if report.failures:
        parts.append(join_lines(["Failed runs:", *(f"  {text}" for text in report.failures)]))
    if report.missing:
        parts.append(f"Not measured yet: {len(report.missing)} runs; repeat `toolkit scale` to measure them.")
    return "\n\n".join(parts)


def _cells(row: SizeRow, *, with_rates: bool, with_speedups: bool) -> list[str]:
    guess = "~" if row.kind == "predicted" else ""
    full = round(_BAR * min(max(row.efficiency, 0.0), 1.0))
    return [
        f"{guess}{row.ranks}",
        "" if row.nodes is None else str(row.nodes),
        number(row.seconds, 3 if guess else 4),
        "" if row.runs == 1 else f"{number(row.seconds_low)}-{number(row.seconds_high)}",
        *["" if row.rate is None else number(row.rate)] * with_rates,
        *(
            [f"{row.speedup:.2f}", f"{100 * row.efficiency:.0f} %", _FULL * full + _EMPTY * (_BAR - full)]
            if with_speedups
            else []
        ),
    ]
