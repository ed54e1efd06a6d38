"""The command ``toolkit doctor``."""

from pathlib import Path
from typing import Any

import click

from toolkit.cli.dashes import REST, SplitAtDashes
from toolkit.cli.doctor.options import DoctorOptions, check_combination
from toolkit.cli.options.keys import key_options
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.places import place_options
from toolkit.cli.options.whole import WholeNumber
from toolkit.image.buildfile.steps import is_buildfile
from toolkit.model.prediction import MODES
from toolkit.model.runtime import NAMES
from toolkit.report.progress import Progress

_COUNT = WholeNumber(1)


@click.command("doctor", cls=SplitAtDashes)
@click.argument("image", required=False)
@place_options
@click.option(
    "--facts", metavar="FILE", type=click.Path(path_type=Path), help="Facts file that toolkit probe -o wrote"
)
@click.option("--site", metavar="NAME", help="Predict the launch with this site profile")
@click.option(
    "--job", "job_file", metavar="FILE", help="Predict the launch of the job that this YAML file specifies"
)
@click.option(
    "--env-image", metavar="FILE", help="Environment (file with packages) that toolkit env create wrote"
)
@click.option(
    "--runtime",
    type=click.Choice(NAMES),
    metavar="RUNTIME",
    help=f"Container runtime to use if the host has several; one of {', '.join(NAMES)}",
)
@click.option("--nodes", type=_COUNT, help="Number of nodes  [default: 2]")
@click.option("--ranks-per-node", type=_COUNT, help="Ranks on each node  [default: 1]")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(MODES),
    metavar="MODE",
    help=f"Predict only this mode; with --live, run a job in this mode; one of {', '.join(MODES)}",
)
@click.option("--live", is_flag=True, help="Run a small job, and compare its result with the prediction")
@click.option(
    "--no-run", is_flag=True, help="Do not start a container to read the image's environment variables"
)
@click.option("--partition", metavar="NAME", help="Slurm partition for the probe and for the job of --live")
@click.option("--account", metavar="NAME", help="Slurm account for the job of --live")
@key_options
@click.option(
    "--fix", is_flag=True, help="Write a file for toolkit launch, with options that make the launch work"
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File that --fix writes  [default: fix.toml]"
)
@click.option("--ask", is_flag=True, help="Predict from a few facts that you type, or from --facts FILE.toml")
@click.option(
    "-a", "--all", "everything", is_flag=True, help="Show every launch mode, all findings and all facts"
)
@json_option("Print the verdict as JSON")
@click.option("--rules", is_flag=True, help="List the rules of the prediction, and exit")
@click.option("--explain", "page", metavar="ID", help="Print the description of rule ID, and exit")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    **given: Any,  # noqa: ANN401 - click's values, one for each option
) -> None:
    """Predict whether IMAGE runs on a cluster, in which launch mode, and why.

    The first line shows the answer and the command to type next. The answer is Yes, Perhaps, No or Unknown.
    Perhaps means that toolkit predicts success but has no record of a similar launch. Unknown means that
    facts are missing. --all shows every launch mode.

    IMAGE may also be a Dockerfile, an Apptainer definition file (FILE.def), or the name of a recipe. toolkit
    then predicts the launch before you build the image. For a Dockerfile or FILE.def, the best answer is
    Perhaps.

    After --, you can give the command that each rank runs: toolkit then checks the MPI library that this
    command loads.

    Some images contain scripts that set environment variables when a container starts. If such an image is on
    the cluster, toolkit starts one container on a node to read these variables. --no-run skips this step.

    The exit status is 0 if a launch mode works (with --mode, if this mode works), 1 if no launch mode works,
    2 for an invalid file or option, 3 if the cluster is unreachable. Without IMAGE, the command checks only
    the host, and the status is 1 if the host cannot launch jobs. With --live, the status is 0 if every job
    works and toolkit predicted no failure. --fix overwrites a file only if an earlier --fix wrote the file.

    \b
    Examples:
      toolkit doctor my.sif --cluster demo
      toolkit doctor my.sif --cluster demo -- /opt/app/bin/solver
      toolkit doctor my.sif --facts facts.json --nodes 4
      toolkit doctor Dockerfile --host login
      toolkit doctor my.sif --host login --site juwels --job train.yaml
      toolkit doctor my.sif --cluster demo --live --mode srun-pmix
      toolkit doctor my.sif --host login --fix -o fix.toml
      toolkit doctor --ask --facts ticket.toml
    """
    options = DoctorOptions(**given, program=ctx.meta.get(REST, ()))
    check_combination(options)
    # If --json is given, neither --live nor the prediction from a build file prints progress messages.
    alone = options.as_json and (options.live or _is_buildfile(options))
    tell = Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or alone)
    ctx.exit(run(options, tell))


def run(options: DoctorOptions, tell: Progress) -> int:
    """Run ``toolkit doctor`` with these options, and return the exit status."""
    if options.ask:
        from toolkit.cli.doctor import ask

        return ask.command(options.facts, as_json=options.as_json)
    if options.rules or options.page:
        from toolkit.cli.doctor.rules import show_rules

        show_rules(options.page, as_json=options.as_json)
        return 0
    if options.live and options.image is not None:
        from toolkit.cli.doctor import live

        return live.command(options, options.image, tell)
    from toolkit.cli.doctor import judge

    if options.image is None:
        return judge.judge_host(options)
    if _is_buildfile(options):
        return judge.judge_buildfile(options, Path(options.image), tell)
    return judge.judge_image(options, options.image, tell)


def _is_buildfile(options: DoctorOptions) -> bool:
    """Return whether IMAGE is an existing Dockerfile or definition file, and ``--live`` is not given."""
    image = options.image
    return image is not None and not options.live and is_buildfile(image) and Path(image).is_file()
