"""``toolkit jobs``: what was launched from here, and what became of it."""

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from toolkit.errors import ToolkitError
from toolkit.launch import records
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.report.progress import Progress

if TYPE_CHECKING:
    from toolkit.run.command import Runner

_F = TypeVar("_F", bound=Callable[..., Any])

_LIST_SECONDS = 10.0
"""How long the list waits for one answer of Slurm; it is a look, not an inquiry."""

_PLACES_AT_ONCE = 8


def _job_argument(function: _F) -> _F:
    return click.argument("job", required=False)(function)


def _json_option(text: str) -> Callable[[_F], _F]:
    return click.option("--json", "as_json", is_flag=True, help=text)


@click.group("jobs", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, follow and cancel launched jobs.

    Example: toolkit jobs list
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_jobs)


@command.command("list")
@_json_option("Print JSON")
def list_jobs(as_json: bool = False) -> None:
    """List the jobs launched from here, the oldest first, after asking Slurm about those that go on."""
    found = _looked_after(records.every(_tell_damage))
    if as_json:
        listed = [{**msgspec.to_builtins(record), "reached": reached} for record, reached in found]
        click.echo(msgspec.json.encode({"schema": "toolkit.jobs/1", "jobs": listed}).decode())
        return
    from toolkit.report.table import table

    rows = [
        (
            r.key,
            r.id,
            r.state if reached else f"{r.state} (not reached)",
            r.mode,
            f"{r.spec.nodes} x {r.spec.ranks_per_node}",
            r.place,
            dt.datetime.fromisoformat(r.submitted).isoformat(timespec="seconds"),
        )
        for r, reached in found
    ]
    click.echo(table(("job", "slurm", "state", "mode", "nodes x ranks", "where", "submitted"), rows))


@command.command("show")
@_job_argument
@_json_option("Print JSON, as it does in any case")
def show(job: str | None, as_json: bool) -> None:  # noqa: ARG001 - every reading command takes --json
    """Print the record of JOB (the last one by default) as JSON, after asking Slurm."""
    record = _refreshed(_find(job))
    click.echo(msgspec.json.format(msgspec.json.encode(record), indent=2).decode())


@command.command("logs")
@_job_argument
@click.option("--follow", is_flag=True, help="Go on until the job ends")
@click.pass_context
def logs(ctx: click.Context, job: str | None, follow: bool) -> None:
    """Print the output of JOB (the last one by default)."""
    record = _find(job)
    if follow and record.state not in FINAL_STATES:
        _follow(ctx, record)
        return
    record = _refreshed(record)
    kept = records.folder(record.key) / records.OUTPUT
    if record.state in FINAL_STATES and kept.is_file():
        click.echo(kept.read_text(encoding="utf-8", errors="replace"), nl=False)
        return
    with _runner(record) as runner:
        output = runner.read(f"{record.spec.directory}/{records.OUTPUT}")
    click.echo(output.decode("utf-8", "replace"), nl=False)


@command.command("wait")
@_job_argument
@_json_option("Print the record at the end")
@click.pass_context
def wait(ctx: click.Context, job: str | None, as_json: bool) -> None:
    """Wait until JOB (the last one by default) has ended; exit 1 if it failed."""
    record = _find(job)
    if record.state not in FINAL_STATES:
        _follow(ctx, record, quiet=True, as_json=as_json)
        return
    if as_json:
        _print(record)
    if record.state != "completed":
        from toolkit.cli.following import failure

        raise failure(record)


@command.command("cancel")
@_job_argument
@_json_option("Print the record")
def cancel(job: str | None, as_json: bool) -> None:
    """End JOB (the last one by default)."""
    from toolkit.launch import jobs

    record = _find(job)
    said = f"has ended already: {record.state}"
    if record.state not in FINAL_STATES:
        with _runner(record) as runner:
            record, _ = jobs.refresh(runner, record)
            said = f"has ended already: {record.state}"
            if record.state not in FINAL_STATES:
                record = jobs.cancel(runner, record)
                said = (
                    "is cancelled"
                    if record.state == "cancelled"
                    else f"was told to end, and is {record.state}"
                )
    if as_json:
        _print(record)
    else:
        click.echo(f"job {record.id or record.key} {said}")


def _print(record: JobRecord) -> None:
    click.echo(msgspec.json.encode(record).decode())


def _follow(ctx: click.Context, record: JobRecord, *, quiet: bool = False, as_json: bool = False) -> None:
    from toolkit.cli.following import conclude, watch_job

    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or as_json) as tell:
        with _runner(record) as runner:
            record = watch_job(runner, record, tell, quiet=quiet)
        if as_json:
            _print(record)
        conclude(record, tell)


def _looked_after(found: list[JobRecord]) -> list[tuple[JobRecord, bool]]:
    """Refresh the records of jobs that go on, all places at once, and say of each whether it was reached."""
    places: dict[tuple[str | None, ...], list[JobRecord]] = {}
    for record in found:
        if record.state not in FINAL_STATES:
            places.setdefault((record.host, record.cluster, record.ssh_config), []).append(record)
    if not places:
        return [(record, True) for record in found]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_PLACES_AT_ONCE) as pool:
        looked = {r.key: (r, ok) for place in pool.map(_look, places.values()) for r, ok in place}
    return [looked.get(record.key, (record, True)) for record in found]


def _look(there: list[JobRecord]) -> list[tuple[JobRecord, bool]]:
    """Ask about the jobs of one place over one connection, until it does not answer any more."""
    from toolkit.launch import jobs

    looked: dict[str, JobRecord] = {}
    with contextlib.suppress(ToolkitError), _runner(there[0]) as runner:
        for record in there:
            refreshed, answered = jobs.refresh(runner, record, _LIST_SECONDS)
            if not answered:
                break
            looked[record.key] = refreshed
    return [(looked.get(record.key, record), record.key in looked) for record in there]


def _find(job: str | None) -> JobRecord:
    return records.find(job, _tell_damage)


def _tell_damage(message: str) -> None:
    click.echo(f"toolkit: passed over {message}", err=True)


def _refreshed(record: JobRecord) -> JobRecord:
    if record.state in FINAL_STATES:
        return record
    from toolkit.launch import jobs

    with _runner(record) as runner:
        return jobs.refresh(runner, record)[0]


@contextlib.contextmanager
def _runner(record: JobRecord) -> Iterator["Runner"]:
    from toolkit.cli.places import open_runner

    config = Path(record.ssh_config) if record.ssh_config else None
    runner = open_runner(record.host, record.cluster, config)
    try:
        yield runner
    finally:
        runner.close()
