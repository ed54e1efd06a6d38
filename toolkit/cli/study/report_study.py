"""``toolkit report STUDY…``: print the results of studies, and write a page, plots and tables."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from toolkit.cli.frame.files import write_report
from toolkit.cli.frame.say import say, say_json, say_text
from toolkit.report.study import study_tables
from toolkit.report.study.study_text import text_of
from toolkit.study.report import read


def report_studies(
    folders: Sequence[Path], output: Path | None, *, text: bool, plot: bool, as_json: bool, width: int
) -> None:
    """Print the results of studies as text or, with ``as_json``, as JSON.

    Also write tables and, with ``plot``, a page and plots to the folder ``output`` (default: the folder
    ``report`` in the first study). If ``text`` (``--text``) or ``as_json`` is true, write files only if
    ``output`` is given.

    Raises:
        Missing: if ``plot`` is true and matplotlib is not installed; the function writes the tables first.
    """
    report = read(folders)
    encoded = study_tables.json_of(report)
    if as_json:
        say_json(encoded)
    else:
        say_text(text_of(report, width))
    if (text or as_json) and output is None:
        return
    where = output or folders[0] / "report"
    write_report(where / "scaling.json", msgspec.json.format(encoded, indent=2) + b"\n")
    write_report(where / "scaling.csv", study_tables.csv_of(report).encode())
    write_report(where / "scaling.tex", study_tables.latex_of(report).encode())
    if not plot:
        return
    # Write the plots last. If matplotlib is missing, the other files exist nevertheless.
    from toolkit.report.study.study_page import page
    from toolkit.report.study.study_plots import plots

    drawn = plots(report)
    for one in drawn:
        write_report(where / f"{one.name}.svg", one.svg.encode(), notice=False)
        write_report(where / f"{one.name}.png", one.png, notice=False)
    say(f"wrote {len(drawn)} plots as SVG and PNG to {where}", err=True)
    write_report(where / "index.html", page(report, drawn).encode())
