"""``toolkit launch``: predict a launch, submit its job, follow the job, and explain a failure."""

from pathlib import Path
from typing import Any

import click

from toolkit.cli.dashes import REST
from toolkit.cli.frame.say import say, say_exact, say_json
from toolkit.cli.options.groups import GroupedOptions
from toolkit.cli.options.joboptions import given_fields, job_options, without_options
from toolkit.cli.options.keys import key_options
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.places import place_options
from toolkit.errors import BadInput
from toolkit.report.progress import Progress


@click.command("launch", cls=GroupedOptions)
@click.argument("trainer", metavar="[PROGRAM]", required=False)
@job_options
@click.option("--job", "job_file", metavar="FILE", help="Read a job specification in YAML")
@click.option(
    "--from-job",
    metavar="JOB",
    help="Launch a recorded job again; your other options override the recorded values",
)
@click.option("--local", is_flag=True, help="Run on this machine, without Slurm")
@click.option("--fix", metavar="FILE", help="Apply the fixes in FILE, which toolkit doctor --fix wrote")
@click.option("--force", is_flag=True, help="Launch even if a failure is predicted")
@click.option("--copies", is_flag=True, help="Run independent copies of the program, one for each rank")
@click.option(
    "--project", metavar="DIR", help="Folder to copy to the cluster  [default: the script's folder]"
)
@click.option("--sync/--no-sync", default=True, help="Copy the project to the cluster")
@key_options
@click.option("--dry-run", is_flag=True, help="Print the job script and stop")
@click.option("--explain", is_flag=True, help="Show in the job script where each value comes from")
@click.option("--follow/--no-follow", default=True, help="Show the output until the job ends")
@click.option(
    "--fetch",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="After the job ends, copy its files that match PATTERN to this machine",
)
@json_option("Print the job record as JSON")
@place_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    host: str | None,
    cluster: str | None,
    ssh_config: Path | None,
    **given: Any,  # noqa: ANN401 - click's values, one for each option
) -> None:
    """Run your script, a trainer, or any command after --, as a Slurm job in a container.

    PROGRAM is a Python file (train.py), a job specification in YAML (job.yaml), or one of
    toolkit's trainers mnist, mnist-cnn, fashion-mnist, cifar10, imagenet and imagenet-synthetic. toolkit
    passes the words after -- to the program. Without PROGRAM, the words after -- are the command of each
    rank.

    \b
    Examples:
      toolkit launch --image my.sif train.py -- --epochs 5
      toolkit launch --image my.sif --nodes 4 -- python train.py
      toolkit launch mnist --nodes 2 --cluster demo -- --epochs 1
      toolkit launch cifar10 --nodes 4 --strategy multiworker
      toolkit launch mnist --site juwels --dry-run
    """
    from toolkit import app

    options = without_options(given) | given_fields(given)
    options |= {"host": host, "cluster": cluster, "ssh_config": ssh_config, "job": options.pop("job_file")}
    options["arguments"] = ctx.meta.get(REST, ())
    trainer, as_json = options.pop("trainer"), options.pop("as_json")
    dry_run, follow, patterns = options.pop("dry_run"), options.pop("follow"), options.pop("patterns")
    if patterns and not follow:
        raise BadInput(
            "--fetch: cannot be combined with --no-follow, which does not wait for the end of the job",
            fix="fetch later: `toolkit jobs fetch`",
        )
    _check(local=options["local"], dry_run=dry_run, follow=follow, as_json=as_json)
    quiet = ctx.obj["quiet"] or as_json
    with Progress(verbose=ctx.obj["verbose"], quiet=quiet, output=not as_json) as tell:
        if dry_run:
            say_exact(app.script(trainer, tell=tell, **options))
            return
        record = app.launch(trainer, follow=follow, tell=tell, **options)
        if as_json:
            say_json(record)
        if follow:
            from toolkit.job.running.follow import conclude  # slow import

            conclude(record, tell)
            if patterns:
                app.fetch(record, *patterns, tell=tell)
        elif not as_json:
            say(f"job {record.id} is submitted; follow the output: toolkit jobs logs --follow {record.key}")


def _check(*, local: bool, dry_run: bool, follow: bool, as_json: bool) -> None:
    if dry_run and as_json:
        raise BadInput("--json and --dry-run: cannot be combined, because --dry-run makes no job record")
    if local and not follow:
        raise BadInput(
            "--local: cannot be combined with --no-follow, because the job stops when this command stops",
            fix="run the command in the background of the shell: `nohup toolkit launch --local ... &`",
        )
