"""``toolkit report``: show the results of a training, a study or a timeline as text, plots or JSON."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput

if TYPE_CHECKING:
    from toolkit.model.job import JobRecord


@click.command("report")
@click.argument("jobs", metavar="[JOB|DIR|STUDY]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder to which toolkit writes the results as files",
)
@click.option("--plot/--no-plot", default=True, help="Draw plots and, for a study, write an HTML page")
@click.option("--text", is_flag=True, help="Print the results of a study, and write files only with --output")
@click.option(
    "--timeline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Analyse a timeline file of Horovod",
)
@click.option(
    "--for",
    "form",
    metavar="FORM",
    help="Write the scaling evidence for a centre's application form; --for list shows the forms",
)
@json_option("Print the result as JSON")
def command(
    jobs: tuple[str, ...],
    output: Path | None,
    plot: bool,
    text: bool,
    timeline: Path | None,
    form: str | None,
    as_json: bool,
) -> None:
    """Show the results of a training or a scaling study.

    JOB is a job launched from this machine (default: the last job). DIR is the folder of a job or of a
    trainer's output. With --output, the command also writes result.json and training.png.

    For a sweep, the command prints a table of the tasks; with --output, the command also writes sweep.csv and
    sweep.json. For a job without metrics files, the command prints the values in the job's output, such as
    "loss: 0.31"; with --output, the command also writes figures.csv and figures.json.

    STUDY is a folder that toolkit scale made. If you give several studies, one HTML page shows all of them.
    The command writes the page, the plots and the tables (CSV, LaTeX) to the folder of --output. The default
    folder is report/ in the first STUDY.

    \b
    Examples:
      toolkit report mnist-20250131 -o build/demo
      toolkit report studies/resnet50 studies/resnet152 -o build/resnets
      toolkit report studies/resnet50 --for csc-roihu-gpularge
      toolkit report --timeline timeline.json
    """
    if timeline is not None:
        _timeline(timeline, jobs, as_json=as_json)
        return
    if form is not None:
        from toolkit.cli.study.report_form import report_form

        report_form(form, jobs, output, as_json=as_json)
        return
    if output is not None:
        from toolkit.run.folders import check_folder

        check_folder(output, "--output")
    if _studies(jobs):
        from toolkit.cli.frame.styles import width_of_stdout
        from toolkit.cli.study.report_study import report_studies

        folders = [Path(job) for job in jobs]
        width = width_of_stdout()
        report_studies(folders, output, text=text, plot=plot, as_json=as_json, width=width)
    elif text:
        raise BadInput("--text: only for studies; a training is always printed as text")
    else:
        _training(jobs[0] if jobs else None, output, plot=plot, as_json=as_json)


def _studies(jobs: tuple[str, ...]) -> bool:
    """Return whether the arguments are studies.

    Raises:
        BadInput: if the user gives several arguments and one of them is not a study.
    """
    from toolkit.study.folder import is_study

    found = [is_study(Path(job)) for job in jobs]
    if not all(found) and len(jobs) > 1:
        other = jobs[found.index(False)]
        raise BadInput(f"{other}: not a study; if you give several arguments, each must be a study")
    return any(found)


def _timeline(file: Path, jobs: tuple[str, ...], *, as_json: bool) -> None:
    from toolkit.cli.frame.styles import width_of_stdout
    from toolkit.report.study.timeline import read_timeline

    if jobs:
        raise BadInput(f"--timeline: cannot be combined with the argument {jobs[0]}; give only the timeline")
    text, encoded = read_timeline(file, width_of_stdout())
    if as_json:
        say_json(encoded)
    else:
        say_text(text)


def _training(job: str | None, output: Path | None, *, plot: bool, as_json: bool) -> None:
    import msgspec

    from toolkit.job.running.metrics import folder_of
    from toolkit.job.running.sweep_results import find_sweep
    from toolkit.report.progress import Progress
    from toolkit.report.study.training import epochs_table, summary
    from toolkit.study.result import read_record, read_training, summarise

    if not (job and Path(job).is_dir()) and (record := find_sweep(job)):
        _sweep(record, output, as_json=as_json)
        return
    folder = folder_of(job, Progress())
    if _printed(folder, output, as_json=as_json):
        return
    training = read_training(folder)
    result = summarise(training, read_record(folder))
    encoded = msgspec.json.encode(result)
    if as_json:
        say_json(encoded)
    else:
        say_text(f"{epochs_table(training)}\n\n{summary(result)}")
    if output:
        from toolkit.cli.frame.files import write_report

        write_report(output / "result.json", msgspec.json.format(encoded, indent=2) + b"\n")
        if plot:
            # Write the plots last. If matplotlib is missing, the other files exist nevertheless.
            from toolkit.report.study.plots import training_png

            write_report(output / "training.png", training_png(training, result))


def _printed(folder: Path, output: Path | None, *, as_json: bool) -> bool:
    """Print the metrics in a job's output, and write the metrics to the folder ``output`` if given.

    Return True after printing. Return False without printing in each of these cases: ``folder`` has no job
    record, ``folder`` has no output file, ``folder`` has a metrics file, or the output contains no metrics.
    """
    import msgspec

    from toolkit.cli.frame.styles import width_of_terminal
    from toolkit.launch.tracking.records import OUTPUT
    from toolkit.report.printed_table import printed_csv, printed_text
    from toolkit.study.printed import printed_figures
    from toolkit.study.result import METRICS, read_record

    record = read_record(folder)
    if record is None or (folder / METRICS).exists() or not (folder / OUTPUT).is_file():
        return False
    text = (folder / OUTPUT).read_text(encoding="utf-8", errors="replace")
    result = printed_figures(record.key, text)
    if not result.rows:
        return False
    encoded = msgspec.json.encode(result)
    if as_json:
        say_json(encoded)
    else:
        say_text(printed_text(result, width_of_terminal()))
    if output:
        from toolkit.cli.frame.files import write_report

        write_report(output / "figures.json", msgspec.json.format(encoded, indent=2) + b"\n")
        write_report(output / "figures.csv", printed_csv(result).encode())
    return True


def _sweep(record: "JobRecord", output: Path | None, *, as_json: bool) -> None:
    import msgspec

    from toolkit import app
    from toolkit.cli.frame.styles import width_of_terminal
    from toolkit.report.progress import Progress
    from toolkit.report.sweep_table import sweep_csv, sweep_text

    result = app.report_sweep(record, tell=Progress())
    encoded = msgspec.json.encode(result)
    if as_json:
        say_json(encoded)
    else:
        say_text(sweep_text(result, width_of_terminal()))
    if output:
        from toolkit.cli.frame.files import write_report

        write_report(output / "sweep.json", msgspec.json.format(encoded, indent=2) + b"\n")
        write_report(output / "sweep.csv", sweep_csv(result).encode())
