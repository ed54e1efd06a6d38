"""``toolkit jobs``: what was launched from here, and what became of it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from toolkit.launch import records
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.report.progress import Progress

if TYPE_CHECKING:
    from toolkit.run.command import Runner


@click.group("jobs", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, follow and cancel launched jobs.

    Example: toolkit jobs list
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_jobs)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_jobs(as_json: bool = False) -> None:
    """List the jobs launched from here, the oldest first."""
    found = records.every()
    if as_json:
        listed = [msgspec.to_builtins(record) for record in found]
        click.echo(msgspec.json.encode({"schema": "toolkit.jobs/1", "jobs": listed}).decode())
        return
    from toolkit.report.table import table

    rows = [
        (r.key, r.id, r.state, r.mode, f"{r.spec.nodes} x {r.spec.ranks_per_node}", r.place, r.submitted)
        for r in found
    ]
    click.echo(table(("job", "slurm", "state", "mode", "nodes x ranks", "where", "submitted"), rows))


@command.command("show")
@click.argument("job", required=False)
def show(job: str | None) -> None:
    """Print the record of JOB (the last one by default) as JSON, after asking Slurm."""
    record = _refreshed(records.find(job))
    click.echo(msgspec.json.format(msgspec.json.encode(record), indent=2).decode())


@command.command("logs")
@click.argument("job", required=False)
@click.option("--follow", is_flag=True, help="Go on until the job ends")
@click.pass_context
def logs(ctx: click.Context, job: str | None, follow: bool) -> None:
    """Print the output of JOB (the last one by default)."""
    record = records.find(job)
    kept = records.folder(record.key) / records.OUTPUT
    if record.state in FINAL_STATES and kept.is_file():
        click.echo(kept.read_text(encoding="utf-8", errors="replace"), nl=False)
        return
    runner = _runner(record)
    try:
        if follow:
            _follow(ctx, runner, record)
        else:
            path = f"{record.spec.directory}/{records.OUTPUT}"
            click.echo(runner.read(path).decode("utf-8", "replace"), nl=False)
    finally:
        runner.close()


@command.command("wait")
@click.argument("job", required=False)
@click.pass_context
def wait(ctx: click.Context, job: str | None) -> None:
    """Wait until JOB (the last one by default) has ended; exit 1 if it failed."""
    record = records.find(job)
    if record.state in FINAL_STATES:
        if record.state != "completed":
            from toolkit.cli.following import failure

            raise failure(record)
        return
    runner = _runner(record)
    try:
        _follow(ctx, runner, record, quiet=True)
    finally:
        runner.close()


@command.command("cancel")
@click.argument("job", required=False)
def cancel(job: str | None) -> None:
    """End JOB (the last one by default)."""
    from toolkit.launch import jobs

    record = _refreshed(records.find(job))
    if record.state in FINAL_STATES:
        click.echo(f"job {record.id} has ended already: {record.state}")
        return
    runner = _runner(record)
    try:
        jobs.cancel(runner, record)
    finally:
        runner.close()
    click.echo(f"job {record.id} is cancelled")


def _follow(ctx: click.Context, runner: "Runner", record: JobRecord, *, quiet: bool = False) -> None:
    from toolkit.cli.following import follow_job

    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        follow_job(runner, record, tell, quiet=quiet)


def _refreshed(record: JobRecord) -> JobRecord:
    if record.state in FINAL_STATES:
        return record
    from toolkit.launch import jobs

    runner = _runner(record)
    try:
        return jobs.refresh(runner, record)
    finally:
        runner.close()


def _runner(record: JobRecord) -> "Runner":
    from toolkit.cli.places import open_runner

    return open_runner(record.host, record.cluster, Path(record.ssh_config) if record.ssh_config else None)
