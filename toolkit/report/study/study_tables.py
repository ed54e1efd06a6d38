"""Format the values of a scaling report as rows, and the rows as CSV, LaTeX and JSON."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import msgspec

from toolkit.number import number
from toolkit.report.plain import one_line
from toolkit.study import fit
from toolkit.study.report import Report, ReportCurve
from toolkit.study.statistics import MedianSpread

TITLES = (
    "series", "kind", "ranks", "nodes", "runs", "seconds", "seconds_low", "seconds_high", "rate", "rate_low",
    "rate_high", "speedup", "speedup_low", "speedup_high", "efficiency", "communication", "waiting",
)  # fmt: skip


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The characters with which a spreadsheet formula can start. The last four characters are the full-width
forms of the first four characters.
"""


class SizeRow(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one series (one curve of the plots) for one number of ranks.

    In a row of measurements, fields whose names end with ``_low`` and ``_high`` have the lowest and the
    highest value of all runs. In a row of predictions, toolkit expects 95 of 100 future measurements of a
    value, such as ``seconds``, between ``seconds_low`` and ``seconds_high``.
    """

    series: str
    kind: str
    ranks: int
    nodes: int | None
    runs: int
    seconds: float
    seconds_low: float
    seconds_high: float
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    speedup: float
    speedup_low: float
    speedup_high: float
    efficiency: float
    communication: float | None
    waiting: float | None


def rows(report: Report, *, with_predictions: bool = True) -> list[SizeRow]:
    """Return the rows of each curve: first a row for each number of ranks with measurements, then a row for
    each number of ranks with predictions. If ``with_predictions`` is false, leave out the predictions.
    """
    return [
        row
        for line in report.lines
        for row in (*_measured_rows(line), *(_predicted_rows(line) if with_predictions else ()))
    ]


def csv_of(report: Report) -> str:
    """Return all values as CSV, rounded to six decimal places."""
    out = io.StringIO()
    writer = csv.DictWriter(out, TITLES, lineterminator="\n")
    writer.writeheader()
    for row in rows(report):
        writer.writerow({name: _cell(value) for name, value in msgspec.structs.asdict(row).items()})
    return out.getvalue()


def _cell(value: object) -> object:
    """Return a CSV cell. Put an apostrophe before a text that looks like a formula, so that spreadsheets do
    not evaluate the formula. Source: OWASP, "CSV Injection".
    """
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def json_of(report: Report) -> bytes:
    """Return the report as JSON (schema ``toolkit.scaling/1``)."""
    document: dict[str, Any] = {
        "schema": "toolkit.scaling/1",
        "title": report.title,
        "rows": rows(report),
        "verdicts": report.verdicts,
        "series": [
            {
                "label": line.label,
                "scaling": line.curve.scaling,
                "sentences": line.sentences,
                "model": None
                if line.fit is None
                else {"weights": line.fit.weights, "serial": _three(line.fit.serial)},
                "check": None
                if line.check is None
                else {
                    "ranks": line.check.ranks,
                    "predicted": _three(line.check.prediction),
                    "measured": line.check.measurement,
                    "holds": line.check.holds,
                },
            }
            for line in report.lines
        ],
        "environment": {name: dict(values) for name, values in report.environment},
        "left_out": report.failures,
        "missing": report.missing,
    }
    return msgspec.json.encode(document)


def latex_of(report: Report) -> str:
    """Return a LaTeX table of the measurements, without predictions. The document must load the package
    booktabs.
    """
    unit = _tex(report.units)
    lines = [
        r"\begin{tabular}{lrrrrrr}",
        r"\toprule",
        rf"series & ranks & nodes & s/{_tex(report.work)} & {unit}/s & speed-up & efficiency \\",
        r"\midrule",
    ]
    before = None
    for row in rows(report, with_predictions=False):
        series = _tex(row.series) if row.series != before else ""
        if before is not None and series:
            lines.append(r"\midrule")
        before = row.series
        spread = max(row.seconds_high - row.seconds, row.seconds - row.seconds_low)
        seconds = f"${_thin_spaces(row.seconds)}" + (rf" \pm {_thin_spaces(spread, 2)}$" if spread else "$")
        rate = "--" if row.rate is None else _thin_spaces(row.rate)
        lines.append(
            f"{series} & {row.ranks} & {row.nodes} & {seconds} & {rate} & {row.speedup:.2f} & "
            rf"{100 * row.efficiency:.0f}\,\% \\"
        )
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _measured_rows(line: ReportCurve) -> Iterator[SizeRow]:
    for point in line.curve.points:
        yield SizeRow(
            series=line.label,
            kind="measured",
            ranks=point.ranks,
            nodes=point.nodes,
            runs=len(point.runs),
            **_spread_columns("seconds", point.seconds),
            **_spread_columns("rate", point.rate),
            **_spread_columns("speedup", point.speedup),
            efficiency=round(point.efficiency.value, 6),
            communication=round(point.shares.communication, 6) if point.shares else None,
            waiting=None if point.waiting is None else round(point.waiting, 6),
        )


def _predicted_rows(line: ReportCurve) -> Iterator[SizeRow]:
    if line.fit is None:
        return
    work = _work(line)
    for ranks in fit.further(line.curve):
        seconds, speedup = line.fit.seconds(ranks), line.fit.speedup(ranks)
        rate = MedianSpread(work / seconds.value, work / seconds.high, work / seconds.low) if work else None
        yield SizeRow(
            series=line.label,
            kind="predicted",
            ranks=ranks,
            nodes=None,
            runs=0,
            **_spread_columns("seconds", seconds),
            **_spread_columns("rate", rate),
            **_spread_columns("speedup", speedup),
            efficiency=round(speedup.value / ranks, 6),
            communication=None,
            waiting=None,
        )


def _work(line: ReportCurve) -> float | None:
    """Return the number of units, such as images, in an epoch. Return ``None`` if the rate is unknown."""
    base = line.curve.base
    return base.rate.value * base.seconds.value if base.rate else None


def _spread_columns(name: str, spread: MedianSpread | None) -> dict[str, Any]:
    value, low, high = _three(spread) if spread else (None, None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _three(spread: MedianSpread) -> tuple[float, float, float]:
    return (round(spread.value, 6), round(spread.low, 6), round(spread.high, 6))


def _thin_spaces(value: float, digits: int = 3) -> str:
    """Return a number for LaTeX, with thin spaces between groups of three digits."""
    return number(value, digits).replace(",", r"\,")


def _tex(text: str) -> str:
    return "".join(
        {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}.get(
            c, f"\\{c}" if c in "#$%&_{}" else c
        )
        for c in one_line(text)
    )
