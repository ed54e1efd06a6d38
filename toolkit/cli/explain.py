"""``toolkit explain``: find the cause of a failed job in its output."""

import sys
from typing import TYPE_CHECKING

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput, CheckFailed

if TYPE_CHECKING:
    from toolkit.model.finding import OutputExplanation


@click.command("explain")
@click.argument("file", type=click.Path(allow_dash=True))
@json_option("Print the findings as JSON")
def command(file: str, as_json: bool) -> None:
    """Show where a job failed, why, and how to fix the fault; FILE is the output of the job.

    FILE may also be the key of a job from `toolkit jobs`, the folder of a job, the number of a Slurm job, a
    folder of output files, or `-` for standard input. toolkit prints the cause of the failure, and the first
    line that reports the failure. If the cause is unknown, toolkit prints the kind of failure, such as out of
    memory. toolkit also says whether to submit the job again. The exit status is 1 if no line reports a
    failure.

    \b
    Examples:
      toolkit explain slurm-12.out
      toolkit explain 12
    """
    from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
    from toolkit.report.explained import explanation_lines

    found = _explain(file)
    if as_json:
        say_json(found, indent=True)
    elif found.root or found.findings:
        say(*explanation_lines(found, style_of_stdout(), width_of_stdout()))
    name = "standard input" if file == "-" else file
    if found.unread:
        first, last = found.unread
        say(
            f"warning: {name}: the output is too long; "
            f"toolkit skipped some or all of lines {first} to {last}",
            err=True,
        )
    if not found.root and not found.findings:
        raise CheckFailed(
            f"{name}: no line reports a failure",
            fix="give the complete output of all ranks; `toolkit doctor IMAGE` predicts faults of a launch",
        )


def _explain(file: str) -> "OutputExplanation":
    from toolkit import app

    if file != "-":
        return app.explain(file)
    if sys.stdin is None:
        raise BadInput("standard input is closed", fix="give the output file of the job")
    return app.explain(sys.stdin.buffer)
