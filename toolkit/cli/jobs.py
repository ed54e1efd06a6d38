"""``toolkit jobs``: list, show, follow, resume and cancel launched jobs."""

import datetime as dt
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import click
import msgspec

from toolkit import app
from toolkit.cli.frame.lazy import NearGroup
from toolkit.cli.frame.say import say, say_json, say_text
from toolkit.cli.options.keys import key_options
from toolkit.cli.options.outputs import json_option
from toolkit.cli.options.whole import WholeNumber
from toolkit.errors import BadInput
from toolkit.job.running.follow import conclude
from toolkit.job.running.reach import refresh_everywhere
from toolkit.launch.tracking.jobs import is_local
from toolkit.model.job import FINAL_STATES, JobRecord, JobState
from toolkit.report.plain import make_line_visible, make_output_visible
from toolkit.report.progress import Progress

_F = TypeVar("_F", bound=Callable[..., Any])

_STATES: tuple[str, ...] = get_args(JobState)


def _job_argument(function: _F) -> _F:
    return click.argument("job", required=False)(function)


@click.group("jobs", cls=NearGroup, invoke_without_command=True)
@json_option("Print the list as JSON")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List, show, follow, resume and cancel launched jobs.

    JOB is a job's key (such as mnist-20261126), the start of a key, or a Slurm job number. If you leave out
    JOB, the subcommands use the last job that you launched from this machine.

    Example: toolkit jobs list
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_jobs, as_json=as_json)
    elif as_json:
        raise BadInput(
            f"--json: must come after the subcommand `{ctx.invoked_subcommand}`",
            fix=f"write: `toolkit jobs {ctx.invoked_subcommand} --json`",
        )


@command.command("list", short_help="List the jobs, the newest first")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES),
    help="List only jobs in this state (repeatable)",
)
@click.option("--site", metavar="NAME", help="List only jobs of this site, host or virtual cluster")
@click.option(
    "--since", metavar="WHEN", help="List only jobs launched after a date, or in the last 2h, 3d or 1w"
)
@json_option("Print JSON")
def list_jobs(
    states: tuple[str, ...] = (), site: str | None = None, since: str | None = None, as_json: bool = False
) -> None:
    """List the jobs launched from this machine, the newest first.

    toolkit first asks Slurm for the state of each job that has not ended. In the JSON output, the order is
    reversed: the oldest job comes first.
    """
    chosen = [r for r in app.jobs(tell=Progress()) if site is None or site in _names(r)]
    if since is not None:
        from toolkit.cli.frame.since import since as moment

        begin = moment(since, dt.datetime.now().astimezone())
        chosen = [r for r in chosen if dt.datetime.fromisoformat(r.submitted) >= begin]
    found = [(r, ok) for r, ok in refresh_everywhere(chosen) if not states or r.state in states]
    if as_json:
        listed = [{**msgspec.to_builtins(record), "reached": ok} for record, ok in found]
        say_json({"schema": "toolkit.jobs/1", "jobs": listed})
        return
    from toolkit.cli.frame.styles import width_of_terminal
    from toolkit.report.job import jobs_table

    say_text(jobs_table(found, width_of_terminal()))


@command.command("show", short_help="Show the state of a job")
@_job_argument
@click.option("--json/--text", "as_json", default=None, help="Print JSON or text")
def show(job: str | None, as_json: bool | None) -> None:
    """Show the state, command, files and times of JOB (default: the last job).

    toolkit first asks Slurm for the state. If the job failed, the text output also names the cause. The JSON
    output is toolkit's record of the job.
    """
    record = app.refresh(job, tell=Progress())
    if as_json is None and not sys.stdout.isatty():
        say(
            "warning: toolkit prints JSON because the output is not a terminal; later releases will print "
            "text; to keep JSON, add --json",
            err=True,
        )
        as_json = True
    if as_json:
        say_json(record, indent=True)
        return
    from toolkit.report.job import job_text

    say_text(job_text(record, _progress(record)))
    if why := app.failure(record):
        fix = [f"fix: {why.fix}"] if why.fix else []
        say("", why.message, *(f"    {make_line_visible(line)}" for line in why.detail), *fix)


@command.command("logs", short_help="Print the output of a job")
@_job_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the job ends")
@click.option("-n", "--tail", type=WholeNumber(1), help="Print only the last N lines")
@json_option("Print the output as JSON; with --follow, only after the job has ended")
@click.pass_context
def logs(ctx: click.Context, job: str | None, follow: bool, tail: int | None, as_json: bool) -> None:
    """Print the output of JOB (default: the last job)."""
    if tail is not None and (follow or as_json):
        raise BadInput("--tail: cannot be combined with --follow or --json")
    record = app.job(job, tell=Progress())
    if follow and record.state not in FINAL_STATES:
        with _progress_of(ctx, as_json=as_json, output=not as_json) as tell:
            record = app.follow(record, tell=tell)
            if as_json:
                _print_as_json(record)
            else:
                conclude(record, tell)
    elif as_json:
        _print_as_json(app.refresh(record))
    elif tail is not None:
        lines: deque[str] = deque(maxlen=tail)
        for text in app.logs(record, tell=Progress()):
            lines.extend(text.removesuffix("\n").split("\n"))
        say_text(make_output_visible("\n".join(lines)))
    else:
        for text in app.logs(record, tell=Progress()):
            say_text(make_output_visible(text.removesuffix("\n")))


@command.command("fetch", short_help="Copy the files of a job to this machine")
@_job_argument
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("-o", "--output", "target", metavar="DIR", help="Folder to write to  [default: ./JOB]")
@json_option("Print the copied files as JSON")
@click.pass_context
def fetch(
    ctx: click.Context,
    job: str | None,
    patterns: tuple[str, ...],
    target: str | None,
    as_json: bool,
) -> None:
    """Copy to this machine the files that JOB (default: the last job) wrote.

    toolkit skips files that the folder of --output already contains, and resumes an interrupted copy. PATTERN
    is the name of a file, or the path of a file or folder in the job's folder. In PATTERN, `*` matches any
    text. Without PATTERN, toolkit copies all files.

    \b
    Examples:
      toolkit jobs fetch
      toolkit jobs fetch mnist-20261125 '*.keras' -o results
    """
    record = app.job(job, tell=Progress())
    with _progress_of(ctx, as_json=as_json) as tell:
        copied = app.fetch(record, *patterns, target=target, tell=tell)
    if as_json:
        found = {"key": record.key, "folder": target or record.key, "files": list(map(str, copied))}
        say_json({"schema": "toolkit.fetched/1", **found})
        return
    where = make_line_visible(target or record.key)
    say(f"{len(copied)} files copied to {where}" if copied else f"nothing to copy: {where} has all files")


@command.command("wait", short_help="Wait until jobs have ended")
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@click.option("--any", "first", is_flag=True, help="Wait only until one of the jobs has ended")
@json_option("After the jobs have ended, print the job record as JSON; for several jobs, a list")
@click.pass_context
def wait(ctx: click.Context, jobs: tuple[str, ...], first: bool, as_json: bool) -> None:
    """Wait until every JOB (default: the last job) has ended.

    The exit status is 1 if one of the ended jobs did not complete successfully.
    """
    from toolkit.job.running.follow import failure
    from toolkit.job.running.reach import find_all
    from toolkit.job.running.wait import outcome

    found = find_all(jobs, Progress())
    with _progress_of(ctx, as_json=as_json, output=False) as tell:
        if len(found) == 1:
            _wait_for_one(found[0], tell, as_json=as_json)
            return
        ended = app.wait(*found, first=first, tell=tell)
        _print_several(ended, as_json=as_json)
        if error := outcome(ended, failure):
            raise error


@command.command("cancel", short_help="Cancel jobs")
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@json_option("Print the job record, or a list of records, as JSON")
def cancel(jobs: tuple[str, ...], as_json: bool) -> None:
    """Cancel every JOB (default: the last job)."""
    from toolkit.job.running.cancel import CancelResult, cancel_all, failure
    from toolkit.job.running.reach import find_all

    def tell(result: CancelResult) -> None:
        if not as_json:
            say(f"job {result.record.id or result.record.key} {result.message}")

    tried = cancel_all(find_all(jobs, Progress()), tell)
    if as_json and (len(tried) > 1 or tried[0].error is None):
        _print_records([(one.record, one.was_reached) for one in tried])
    if error := failure(tried):
        raise error


@command.command("resume", short_help="Submit an ended job again in its folder")
@_job_argument
@key_options
@json_option("Print the job record as JSON")
@click.pass_context
def resume(
    ctx: click.Context, job: str | None, verify_key: str | None, no_verify: bool, as_json: bool
) -> None:
    """Submit an ended JOB (default: the last job) again in the job's folder.

    toolkit's trainers continue from their last checkpoint. A job of `toolkit launch --local` runs again on
    this machine.
    """
    with _progress_of(ctx, output=not as_json) as tell:
        record = app.resume(job, verify_key=verify_key, no_verify=no_verify, tell=tell)
        if as_json:
            _print_several([record], as_json=True)
        if is_local(record):
            conclude(record, tell)
        elif not as_json:
            say(f"job {record.id} is submitted; follow the output: toolkit jobs logs --follow {record.key}")


def _progress_of(ctx: click.Context, *, as_json: bool = False, output: bool = True) -> Progress:
    """Return the object that prints a command's progress. If ``output`` is true, the object also prints the
    job's output. If ``as_json`` is true or the user gives ``--quiet``, the object prints no progress.
    """
    return Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"] or as_json, output=output)


def _progress(record: JobRecord) -> dict[int, str]:
    if not record.tasks:
        return {}
    from toolkit.job.running.tasks import progress

    return progress(record)


def _print_as_json(record: JobRecord) -> None:
    from toolkit.job.running.output import ends

    output, left_out = ends(record, Progress())
    head = {"schema": "toolkit.output/1", "key": record.key, "id": record.id, "state": record.state}
    say_json({**head, "output": output, "left_out": left_out})


def _names(record: JobRecord) -> set[str]:
    """Return the values of ``--site`` that select this job: the names of its site, host and cluster."""
    return {name for name in (record.spec.site, record.host, record.cluster, record.place) if name}


def _print_several(job_records: Sequence[JobRecord], *, as_json: bool) -> None:
    if not as_json:
        for record in job_records:
            say(f"{record.key} {record.state}")
    else:
        _print_records([(record, True) for record in job_records])


def _print_records(pairs: list[tuple[JobRecord, bool]]) -> None:
    """Print job records as JSON. Each pair contains a record, and whether toolkit reached the job's host.

    toolkit prints a single record without the field ``reached``.
    """
    if len(pairs) == 1:
        say_json(pairs[0][0])
        return
    listed = [{**msgspec.to_builtins(record), "reached": ok} for record, ok in pairs]
    say_json({"schema": "toolkit.jobs/1", "jobs": listed})


def _wait_for_one(record: JobRecord, tell: Progress, *, as_json: bool) -> None:
    ended = record.state in FINAL_STATES
    record = app.follow(record, tell=tell)
    if as_json:
        _print_several([record], as_json=True)
    if not ended or record.state != "completed":
        conclude(record, tell)
