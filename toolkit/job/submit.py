"""The ways of ``toolkit launch``: as a job of Slurm, on this machine, once more, or as a script alone."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.cli.say import say, say_exact, say_json
from toolkit.errors import BadInput, Missing
from toolkit.job.layering import Asked, announce, asked
from toolkit.job.places import Where, where_of
from toolkit.report.progress import Progress

if TYPE_CHECKING:
    from toolkit.job.flags import Flags
    from toolkit.job.prepare import Prepared
    from toolkit.model.job import JobRecord
    from toolkit.model.progress import Tell
    from toolkit.run.command import Runner

Opener = Callable[[str | None, str | None, Path | None], "Runner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of ``toolkit launch``: ``said`` are fields of the job, ``words`` what stood after ``--``."""

    said: Mapping[str, Any]
    words: tuple[str, ...]
    where: Where
    job_file: str | None = None
    from_job: str | None = None
    local: bool = False
    fix: str | None = None
    force: bool = False
    verify_key: str | None = None
    no_verify: bool = False
    dry_run: bool = False
    explain: bool = False
    follow: bool = True
    as_json: bool = False


def run(call: Call, tell: Progress, opener: Opener) -> None:
    """Do what is asked for; the script or the record goes to standard output.

    Raises:
        ToolkitError: whatever stands in the way, or what became of the job.
    """
    if call.dry_run and call.as_json:
        raise BadInput("--json prints the record of a job, and --dry-run makes none; leave one of them out")
    if call.from_job is not None:
        _again(call, tell, opener)
        return
    made = asked(call.said, call.words, call.job_file, here=call.local)
    announce(made)
    if call.local:
        from toolkit.job.local import launch_here

        launch_here(call, made, tell, opener)
    elif call.dry_run and is_far_away(call.where, made):
        from toolkit.job.offline import script_for

        assert made.site is not None  # noqa: S101 - is_far_away says so
        say_exact(script_for(made, made.site, _flags(call), tell))
    else:
        _submit(call, made, tell, opener)


def _flags(call: Call) -> "Flags":
    from toolkit.job.flags import Flags

    return Flags(call.force, call.fix, call.verify_key, call.no_verify, call.explain)


def is_far_away(where: Where, made: Asked) -> bool:
    """Tell whether a job is for a site that is neither this machine nor named as a host."""
    return made.site is not None and not where.remote and not shutil.which("sbatch")


def _submit(call: Call, made: Asked, tell: Progress, opener: Opener) -> None:
    from toolkit.job.prepare import check, prepare

    flags = _flags(call)
    sources = check(made, flags)
    where = place_of(call.where, made)
    runner = opener(*where)
    try:
        job = prepare(runner, made, flags, sources, tell, remote=where.remote)
        finish(call, job, where, runner, tell)
    finally:
        runner.close()


def place_of(where: Where, made: Asked) -> Where:
    """Return where to go: what was named, this machine if it has Slurm, else the host of the site."""
    if where.remote or made.site is None or shutil.which("sbatch"):
        return where
    if not made.site.host:
        raise Missing(
            f"there is no sbatch here, and the profile of {made.site.title} names no host",
            fix="give --host; or --dry-run for the script alone",
        )
    return where._replace(host=made.site.host)


def submitted(job: "Prepared", where: Where, runner: "Runner", tell: "Tell") -> "JobRecord":
    """Bring the files there, submit, and return the record, which says how to come back."""
    from toolkit.launch import submission
    from toolkit.run.stage import stage

    stage(runner, job.parcels, tell)
    tell.step(f"Submitting to Slurm on {runner.place}")
    return submission.submit(runner, at(job, where).record, job.script, job.secrets)


def at(job: "Prepared", where: Where) -> "Prepared":
    """Return a job whose record says how to come back to its place."""
    import msgspec

    config = str(where.ssh_config.resolve()) if where.ssh_config else None
    record = msgspec.structs.replace(job.record, host=where.host, cluster=where.cluster, ssh_config=config)
    return replace(job, record=record)


def finish(call: Call, job: "Prepared", where: Where, runner: "Runner", tell: Progress) -> None:
    """Print the script, or bring the files there, submit and follow."""

    from toolkit.job.follow import conclude, watch_job

    if call.dry_run:
        say_exact(job.script)
        return
    record = submitted(job, where, runner, tell)
    if call.follow:
        record = watch_job(runner, record, tell, quiet=call.as_json)
    if call.as_json:
        say_json(record)
    if call.follow:
        conclude(record, tell)
    elif not call.as_json:
        say(f"job {record.id} is submitted; follow it: toolkit jobs logs --follow {record.key}")


def _again(call: Call, tell: Progress, opener: Opener) -> None:
    from toolkit.job.repeat import repeated
    from toolkit.launch import records

    _check_again(call)
    record = records.find(call.from_job, on_damage=tell.step)
    where = call.where
    if not where.remote:
        there = where_of(record)
        where = there._replace(ssh_config=where.ssh_config or there.ssh_config)
    runner = opener(*where)
    try:
        finish(call, repeated(runner, record, call, tell, remote=where.remote), where, runner, tell)
    finally:
        runner.close()


def _check_again(call: Call) -> None:
    """Refuse what a launch from a record could only ignore: nothing is chosen anew."""
    options = {
        "--local": call.local,
        "--job": call.job_file,
        "--fix": call.fix is not None,
        "--explain": call.explain,
    }
    if given := [option for option, value in options.items() if value]:
        raise BadInput(
            f"--from-job takes all from a record: leave {' and '.join(given)} out",
            fix="launch without --from-job to choose anew",
        )
