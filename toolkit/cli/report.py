"""``toolkit report``: what a training came to, as a table, a plot and JSON."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from toolkit.model.job import JobRecord


@click.command("report")
@click.argument("job", metavar="[JOB|DIR]", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder to write to",
)
@click.option("--plot/--no-plot", default=True, help="Draw training.png")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON")
def command(job: str | None, output: Path | None, plot: bool, as_json: bool) -> None:
    """Show what a training came to, and write result.json and training.png.

    JOB is a job launched from here (by default the last one), DIR the folder of a job or of a trainer's
    output. Without --output nothing is written.

    Example: toolkit report mnist-20250131 -o build/demo
    """
    import msgspec

    from toolkit.report import result as results
    from toolkit.report.training import epochs_table, summary

    folder = _folder(job)
    training = results.read_training(folder)
    result = results.summarise(training, results.read_record(folder))
    encoded = msgspec.json.encode(result)
    if as_json:
        click.echo(encoded.decode())
    else:
        click.echo(f"{epochs_table(training)}\n\n{summary(result)}")
    if output:
        _write(output / "result.json", msgspec.json.format(encoded, indent=2) + b"\n")
        if plot:
            # Last, so that a machine without matplotlib has all the rest before it is told.
            from toolkit.report.plots import training_png

            _write(output / "training.png", training_png(training, result))


def _folder(job: str | None) -> Path:
    """Return the folder that holds the metrics, after fetching those of a job that was not followed."""
    from toolkit.launch import records

    if job and Path(job).is_dir():
        return Path(job)
    record = records.find(job)
    folder = records.folder(record.key)
    if not (folder / records.METRICS).is_file():
        _fetch(record)
    return folder


def _fetch(record: "JobRecord") -> None:
    from toolkit.cli.places import open_runner
    from toolkit.launch import records

    config = Path(record.ssh_config) if record.ssh_config else None
    runner = open_runner(record.host, record.cluster, config)
    try:
        if content := runner.read(f"{record.spec.directory}/{records.METRICS}"):
            records.keep(record, records.METRICS, content)
    finally:
        runner.close()


def _write(path: Path, content: bytes) -> None:
    from toolkit.run.local import LocalRunner

    LocalRunner().write(str(path), content)
    click.echo(f"wrote {path}", err=True)
