"""``toolkit bench start``: show how long each phase of a job took, until the first training batch."""

from pathlib import Path
from typing import Any

import click

from toolkit.cli.dashes import REST
from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.options.groups import GroupedOptions
from toolkit.cli.options.joboptions import given_fields, job_options
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.places import place_options
from toolkit.errors import BadInput
from toolkit.report.progress import Progress


@click.command("start", cls=GroupedOptions)
@click.argument("job", metavar="[JOB|DIR|PROGRAM]", required=False)
@job_options
@json_option()
@place_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    job: str | None,
    as_json: bool,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    **given: Any,  # noqa: ANN401 - click's values, one for each option
) -> None:
    """Show how long each phase of a job took, from its submission to its first training batch.

    JOB is a job launched from this machine (default: the newest job); DIR is the folder of a job.

    With --, toolkit launches a new job that runs PROGRAM, such as the trainer mnist, with the options after
    --. Without PROGRAM, the new job runs the command after --. When the new job has ended, toolkit shows how
    long each phase took.

    \b
    Examples:
      toolkit bench start mnist-20261126
      toolkit bench start mnist --nodes 2 --cluster demo -- --epochs 1
      toolkit bench start --image my.sif --nodes 4 -- python train.py
    """
    from toolkit.job.running.recorded_start import start_of, start_of_record
    from toolkit.report.start_table import start_text

    fields, words = given_fields(given), ctx.meta.get(REST)
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or as_json, output=False) as tell:
        if words is None:
            if options := [name for name, one in {**fields, "host": host, "cluster": cluster}.items() if one]:
                raise BadInput(
                    f"--{options[0].replace('_', '-')}: applies only to a new launch, "
                    "but the command line has no `--`",
                    fix="for a new job, add `--`: `toolkit bench start --image my.sif -- python train.py`",
                )
            found = start_of(job, tell)
        else:
            from toolkit import app
            from toolkit.job.running.follow import conclude

            place: dict[str, Any] = {"host": host, "cluster": cluster, "ssh_config": ssh_config}
            record = app.launch(job, follow=True, tell=tell, arguments=words, **fields, **place)
            conclude(record, tell)
            found = start_of_record(record)
    if as_json:
        say_json(found)
        return
    say_text(start_text(found))
