"""``toolkit scale``: run a training with several numbers of ranks, and save the results as a study."""

import shlex
from pathlib import Path
from typing import Any

import click

from toolkit.cli.dashes import REST
from toolkit.cli.frame.say import say, say_text
from toolkit.cli.options.groups import GroupedOptions
from toolkit.cli.options.joboptions import given_fields, job_options_without, without_options
from toolkit.cli.options.keys import key_options
from toolkit.cli.options.places import place_options
from toolkit.cli.options.whole import WholeNumber
from toolkit.job.places import open_runner
from toolkit.model.study import STUDY_FIELDS, Study
from toolkit.report.progress import Progress

_MOST = 10_000_000
"""The largest number of ranks or nodes that the options accept."""


class _Counts(click.ParamType):  # type: ignore[type-arg]  # generic in click 8.2 and later only
    """A click type for numbers separated by commas, such as ``1,2,4``."""

    name = "counts"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if not all(word.isascii() and word.isdigit() and word.strip("0") for word in words):
            self.fail(f"{value!r}: expected numbers separated by commas, as in 1,2,4", param, ctx)
        # Check the number of digits first, because Python's int() refuses to convert thousands of digits.
        if any(len(word) > len(str(_MOST)) or int(word) > _MOST for word in words):
            self.fail(f"{value!r}: expected numbers of at most {_MOST}", param, ctx)
        return tuple(int(word) for word in words)


@click.command("scale", cls=GroupedOptions)
@click.argument("trainer", metavar="[PROGRAM]", required=False)
@click.option(
    "--ranks", type=_Counts(), required=True, metavar="N,N…", help="Numbers of ranks to run with, as in 1,2,4"
)
@click.option(
    "--nodes",
    "over",
    type=_Counts(),
    metavar="N,N…",
    help="Numbers of nodes to combine with each number of ranks, as in 1,2",
)
@click.option(
    "--ranks-per-node",
    "per_node",
    type=WholeNumber(1),
    help="Maximum number of ranks on each node  [default: 1; with --nodes, no limit]",
)
@click.option(
    "--repeat",
    type=WholeNumber(1, 1000),
    default=3,
    show_default=True,
    help="Number of runs of each size; a size is a number of ranks on a number of nodes",
)
@click.option(
    "--weak",
    "scaling",
    flag_value="weak",
    default="weak",
    help="Weak scaling (default): the batch of each rank stays the same",
)
@click.option(
    "--strong", "scaling", flag_value="strong", help="Strong scaling: all ranks together divide one batch"
)
@click.option(
    "--batch",
    type=WholeNumber(1),
    help="Batch size of each rank; with --strong, batch size of all ranks together",
)
@click.option("--epochs", type=WholeNumber(1), help="Epochs of each run  [default: --warm-up plus 2]")
@click.option(
    "--warm-up",
    type=WholeNumber(),
    default=1,
    show_default=True,
    help="Number of epochs that the results ignore at the start of each run",
)
@click.option(
    "--compare",
    metavar="FIELD=A,B",
    help="Run each size with FIELD=A and FIELD=B; FIELD is a launch option or environment variable",
)
@click.option(
    "--prove",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Compare the defaults, Horovod's autotune, and the settings that the Horovod timeline FILE suggests",
)
@click.option("--profile", is_flag=True, help="Run each size once more, and record Horovod's timeline")
@click.option(
    "--pattern", metavar="REGEX", help="Regular expression that matches the speed in the output of a run"
)
@click.option(
    "--unit",
    metavar="UNIT",
    default="images",
    show_default=True,
    help="Unit of the speeds that --pattern matches: UNIT per second",
)
@click.option(
    "--retry",
    type=WholeNumber(),
    default=1,
    show_default=True,
    help="Maximum number of retries of each failed run",
)
@click.option(
    "--at-once", type=WholeNumber(1), default=1, show_default=True, help="Maximum number of jobs in the queue"
)
@click.option(
    "--study",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the study  [default: studies/NAME, or studies/NAME-proof with --prove]",
)
@click.option("--force", is_flag=True, help="Launch even if a failure is predicted")
@key_options
@click.option("--dry-run", is_flag=True, help="List the runs, and launch none")
@job_options_without(*STUDY_FIELDS)
@place_options
@click.pass_context
def command(
    ctx: click.Context, /, host: str | None, cluster: str | None, ssh_config: Path | None,
    **given: Any,  # noqa: ANN401 - click's values, one for each option
) -> None:  # fmt: skip
    """Run a trainer, or any command after --, with several numbers of ranks; store the results as a study.

    To resume an interrupted study, run the same command again. Words after -- may contain {ranks}, {nodes}
    and {batch}, which toolkit replaces with the values of each run.

    \b
    Examples:
      toolkit scale mnist --ranks 1,2 --cluster demo
      toolkit scale mnist --ranks 2,4 --compare mode=srun-pmix,gloo --profile
      toolkit scale mnist --ranks 2 --prove studies/mnist/timelines/r2-n2.json
      toolkit scale --ranks 1,2 --pattern 'img/sec: ([0-9.]+)' -- python bench.py
    """
    from toolkit.job.request.flags import Flags
    from toolkit.job.study_options import StudyOptions, secrets_of, study_of
    from toolkit.job.study_run import Sweep, run
    from toolkit.run.folders import check_folder

    said = given_fields(given)
    if given["trainer"] is not None:
        said["trainer"] = given["trainer"]
    rest = {name: value for name, value in without_options(given).items() if name != "trainer"}
    keep = {name: rest.pop(name) for name in ("study", "retry", "at_once", "dry_run")}
    flags = Flags(**{name: rest.pop(name) for name in ("force", "verify_key", "no_verify")})
    wanted = StudyOptions(
        values=said, words=ctx.meta.get(REST, ()), host=host, cluster=cluster, ssh_config=ssh_config, **rest
    )
    told = Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"])
    study = study_of(wanted, flags, told)
    # A study with --prove needs its own folder: its timeline FILE is usually from the study in studies/NAME.
    folder = keep["study"] or Path("studies") / (f"{study.name}-proof" if given["prove"] else study.name)
    check_folder(folder, "--study")
    if keep["dry_run"]:
        _print_runs(folder, study)
        return
    with told as tell:
        how = (keep["retry"], keep["at_once"], flags)
        run(Sweep(folder, *how, open_runner, secrets_of(said)), study, tell, say)


def _print_runs(study_folder: Path, study: Study) -> None:
    """Print the runs of a study with their states; launch no run, and do not change the study."""
    from toolkit.job.study_options import join_studies
    from toolkit.report.table import table
    from toolkit.study import folder, study_points

    study = join_studies(study_folder, study)
    rows = []
    for number, point in enumerate(folder.load_points(study_folder, study), 1):
        _, words = study_points.job_fields(study, point)
        what = list(filter(None, [study_points.trainer_of(study, point)]))
        rows.append((number, point.title, point.state, shlex.join([*what, *words])))
    say_text(table(("", "run", "state", "what"), rows))
    say("", f"{len(rows)} runs, {study.scaling} scaling; folder of the study: {study_folder}")
