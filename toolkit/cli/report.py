"""``toolkit report``: what a training, a study or a timeline tells, as text, plots and JSON."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.say import say, say_json, say_text
from toolkit.errors import BadInput, ToolkitError

if TYPE_CHECKING:
    from toolkit.model.job import JobRecord


@click.command("report")
@click.argument("jobs", metavar="[JOB|DIR|STUDY]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder to write to",
)
@click.option("--plot/--no-plot", default=True, help="Draw plots; of a study, the page too")
@click.option("--text", is_flag=True, help="Print a study, and write nothing without --output")
@click.option(
    "--timeline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Say what a timeline of Horovod tells",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON")
def command(
    jobs: tuple[str, ...], output: Path | None, plot: bool, text: bool, timeline: Path | None, as_json: bool
) -> None:
    """Show what a training or a scaling study came to.

    JOB is a job launched from here (by default the last one), DIR the folder of a job or of a trainer's
    output; without --output nothing is written, with it result.json and training.png are. STUDY is a
    folder that toolkit scale made, several are shown together: one page with plots, and tables as CSV and
    LaTeX, are written to STUDY/report.

    \b
    Examples:
      toolkit report mnist-20250131 -o build/demo
      toolkit report studies/resnet50 studies/resnet152 -o build/resnets
      toolkit report --timeline timeline.json
    """
    if timeline is not None:
        _timeline(timeline, jobs, as_json=as_json)
        return
    if output is not None:
        from toolkit.run.folders import check_folder

        check_folder(output, "--output")
    if _studies(jobs):
        from toolkit.cli.report_study import report_studies
        from toolkit.cli.styles import width_of_stdout

        folders = [Path(job) for job in jobs]
        width = width_of_stdout()
        report_studies(folders, output, text=text, plot=plot, as_json=as_json, width=width)
    elif text:
        raise BadInput("--text: is for studies; a training is printed as text anyway")
    else:
        _training(jobs[0] if jobs else None, output, plot=plot, as_json=as_json)


def _studies(jobs: tuple[str, ...]) -> bool:
    """Tell whether studies are named.

    Raises:
        BadInput: for several jobs, or studies among them.
    """
    from toolkit.study.folder import is_study

    found = [is_study(Path(job)) for job in jobs]
    if not all(found) and len(jobs) > 1:
        other = jobs[found.index(False)]
        raise BadInput(f"{other}: not a study; only studies can be shown together, a job is alone")
    return any(found)


def _timeline(file: Path, jobs: tuple[str, ...], *, as_json: bool) -> None:
    from toolkit.cli.styles import width_of_stdout
    from toolkit.report.timeline import told

    if jobs:
        raise BadInput(f"--timeline: {jobs[0]} has no place beside it; give the file alone")
    text, encoded = told(file, width_of_stdout())
    if as_json:
        say_json(encoded)
    else:
        say_text(text)


def _training(job: str | None, output: Path | None, *, plot: bool, as_json: bool) -> None:
    import msgspec

    from toolkit.report.training import epochs_table, summary
    from toolkit.study import result as results

    folder = _folder(job)
    training = results.read_training(folder)
    result = results.summarise(training, results.read_record(folder))
    encoded = msgspec.json.encode(result)
    if as_json:
        say_json(encoded)
    else:
        say_text(f"{epochs_table(training)}\n\n{summary(result)}")
    if output:
        _write(output / "result.json", msgspec.json.format(encoded, indent=2) + b"\n")
        if plot:
            # Last, so that a machine without matplotlib has all the rest before it is told.
            from toolkit.report.plots import training_png

            _write(output / "training.png", training_png(training, result))


def _folder(job: str | None) -> Path:
    """Return the folder that holds the metrics, after fetching those of a job of which not all are here."""
    from toolkit.launch import records

    if job and Path(job).is_dir():
        return Path(job)
    try:
        record = records.find(job)
    except BadInput as error:
        if job and (Path(job).exists() or "/" in job or not records.any_kept()):
            raise BadInput(
                f"{job}: no folder of a run, and no job of that name was launched from here",
                fix="give the folder of a job, or a name that toolkit jobs list has",
            ) from error
        raise
    folder = records.folder(record.key)
    kept = folder / records.METRICS
    if _settled(record, kept):
        return folder
    try:
        _fetch(record)
    except ToolkitError as error:
        if not kept.is_file():
            raise
        say(f"toolkit: {error.message}; these are the figures that were brought before", err=True)
    return folder


def _settled(record: "JobRecord", kept: Path) -> bool:
    """Tell whether nothing more can be written to what is kept here of a job's metrics."""
    from toolkit.model.job import FINAL_STATES
    from toolkit.model.metrics import are_whole

    try:
        return record.state in FINAL_STATES and are_whole(kept.read_bytes())
    except OSError:
        return False


def _fetch(record: "JobRecord") -> None:
    from toolkit.job.places import where_of
    from toolkit.launch import records

    runner = where_of(record).opened()
    try:
        if content := runner.read(f"{record.spec.directory}/{records.METRICS}", most=records.METRICS_MOST):
            records.keep(record, records.METRICS, content)
    finally:
        runner.close()


def _write(path: Path, content: bytes) -> None:
    from toolkit.cli.files import write_whole

    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    say(f"wrote {path}", err=True)
