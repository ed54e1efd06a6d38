"""``toolkit report STUDY --for FORM``: write the scaling evidence that a centre requires."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from toolkit.cli.frame.files import write_report
from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.frame.styles import width_of_stdout
from toolkit.errors import BadInput, CheckFailed
from toolkit.launch.tracking import records
from toolkit.model.study import Point
from toolkit.report.study.evidence_page import json_of, page, text_of
from toolkit.run.local import LocalRunner
from toolkit.study import folder
from toolkit.study.evidence import evidence
from toolkit.study.forms import form_of, forms
from toolkit.study.report import read

_SCRIPT_MOST = 1 << 20


def report_form(name: str, studies: Sequence[str], output: Path | None, *, as_json: bool) -> None:
    """Print the scaling evidence of one study, and write the evidence to ``FORM.html`` in the folder
    ``output`` (default: ``STUDY/report``). ``name`` is the name of the form; ``list`` only lists all forms.

    Raises:
        BadInput: if the form is unknown, or ``studies`` is not exactly one study.
        CheckFailed: if the study lacks evidence that the form requires; the function writes the file first.
    """
    if name == "list":
        say_text("\n".join(f"{form.name:<20} {form.title}" for form in forms().values()))
        return
    form = form_of(name)
    if len(studies) != 1 or not folder.is_study(Path(studies[0])):
        raise BadInput(
            "--for: needs one study, that is, one folder that `toolkit scale` made",
            fix="name the folder of the study: `toolkit report studies/NAME --for FORM`",
        )
    where = Path(studies[0])
    study = folder.load(where)
    points = folder.load_points(where, study)
    report = read([where])
    script = _script(points)
    found = evidence(form, study, points, _walls(points), script=bool(script))
    if as_json:
        say_json(json_of(form, found))
    else:
        say_text(text_of(form, report, found, width_of_stdout()))
    file = (output or where / "report") / f"{form.name}.html"
    write_report(file, page(form, report, found, script).encode())
    missing = [demand for series in found for demand in series.demands if not demand.met]
    if missing:
        raise CheckFailed(
            f"{where}: the study does not meet a requirement of the form {form.name}: {missing[0].text}",
            fix=missing[0].fix,
        )


def _script(points: Sequence[Point]) -> str:
    """Return the job script of the largest measured run of the study. Skip runs whose job script is not on
    this machine. If no run remains, return an empty string.
    """
    for point in sorted(points, key=lambda point: point.size, reverse=True):
        if point.origin and point.state == "measured":
            file = records.folder(point.origin.job) / records.SCRIPT
            content = LocalRunner().read(str(file), limit=_SCRIPT_MOST)
            if content:
                return content.decode(errors="replace")
    return ""


def _walls(points: Sequence[Point]) -> dict[str, float]:
    """Return the duration of each job in seconds, by job key. Skip jobs without recorded start and end."""
    known = {record.key: record for record in records.every()}
    found = {}
    for point in points:
        record = known.get(point.origin.job) if point.origin else None
        if record and record.started and record.ended:
            try:
                began, ended = (datetime.fromisoformat(text) for text in (record.started, record.ended))
            except ValueError:
                continue
            found[record.key] = (ended - began).total_seconds()
    return found
