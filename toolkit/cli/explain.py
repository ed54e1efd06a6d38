"""``toolkit explain``: what job output means."""

import sys
from typing import TYPE_CHECKING

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.errors import BadInput, CheckFailed

if TYPE_CHECKING:
    from toolkit.model.finding import OutputExplanation


@click.command("explain")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON")
def command(file: str, as_json: bool) -> None:
    """Say what the job output in FILE means and what mends it; - reads standard input.

    Causes stand before their consequences. Exits 1 where nothing is recognised, and shows the
    last lines that look like errors.

    Example: toolkit explain slurm-12.out
    """
    from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
    from toolkit.report.doctor import findings

    found = _explained(file)
    if as_json:
        say_json(found, indent=True)
    elif found.findings:
        *lines, _ = findings(found.findings, style_of_stdout(), width_of_stdout())  # the last one is empty
        say(*lines)
    name = "standard input" if file == "-" else file
    if found.unread:
        first, last = found.unread
        say(f"toolkit: {name}: lines {first} to {last} were not all read: too much output", err=True)
    if not found.findings:
        shown = ["the last lines that look like errors:", *found.suspects] if found.suspects else []
        raise CheckFailed(
            f"{name}: nothing in it is recognised",
            fix="read what the rank that failed first wrote; toolkit doctor IMAGE judges the launch itself",
            detail=[] if as_json else shown,
        )


def _explained(file: str) -> "OutputExplanation":
    from toolkit import app

    if file != "-":
        return app.explain(file)
    if sys.stdin is None:
        raise BadInput("standard input is closed", fix="give the file that sbatch wrote")
    return app.explain(sys.stdin.buffer)
