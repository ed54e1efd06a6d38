"""Follow a job on the screen, and say in words how it ended and why."""

import click

from toolkit.engine.explain import explain
from toolkit.errors import CheckFailed, Interrupted
from toolkit.launch import jobs, output, records
from toolkit.launch.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.progress import Tell
from toolkit.run.command import Runner


def follow_job(runner: Runner, record: JobRecord, tell: Tell, *, quiet: bool = False) -> JobRecord:
    """Show the output of a job until its end.

    Raises:
        CheckFailed: if the job did not complete, with the failing rank's last lines, the cause and the fix.
        Interrupted: on Ctrl-C, which leaves the job as it is and says how to come back.
    """
    last: list[JobStatus] = []

    def on_state(status: JobStatus) -> None:
        changed = not last or (last[-1].state, last[-1].reason) != (status.state, status.reason)
        if changed and status.state not in FINAL_STATES:
            tell.step(f"Job {record.id} {_state_in_words(status)}")
        last[:] = [status]

    def on_line(line: str) -> None:
        if not quiet:
            click.echo(output.shown(line))

    try:
        record = jobs.follow(runner, record, on_line, on_state)
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped following; job {record.id} goes on",
            fix=f"toolkit jobs logs --follow {record.key}   (to end it: toolkit jobs cancel {record.key})",
        ) from None
    if record.state != "completed":
        raise failure(record)
    tell.step(f"Job {record.id} is complete; for its figures: toolkit report {record.key}")
    return record


def failure(record: JobRecord) -> CheckFailed:
    """Say why a job failed, from what it wrote: the first rank that failed, the cause, what mends it."""
    folder = records.folder(record.key)
    try:
        text = (folder / records.OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    detail = []
    if first := output.first_failure(text):
        detail.append(f"rank {first.rank} on {first.node} failed first: {first.how}; its last lines:")
        detail += [f"    {line}" for line in first.last_lines]
    findings = explain(text)
    for finding in findings:
        detail.append(f"cause: {finding.title} ({finding.id})")
        detail += [f"    {line}" for line in finding.evidence[:2]]
    if record.forced:
        detail.append(f"this was forced; the prediction for {record.mode} was '{record.predicted}'")
    code = f", exit code {record.exit_code}" if record.exit_code is not None else ""
    fixes = [f.fix for f in findings if f.fix]
    return CheckFailed(
        f"job {record.id} {'ended as ' if record.state in FINAL_STATES else 'is '}{record.state}{code}",
        fix=fixes[0] if fixes else f"read all of its output: toolkit jobs logs {record.key}",
        detail=detail,
    )


def _state_in_words(status: JobStatus) -> str:
    if status.state == "pending":
        return f"waits: {status.reason}" if status.reason else "waits"
    if status.state == "running":
        return f"runs on {status.nodes}" if status.nodes else "runs"
    return "is in a state that Slurm does not tell"
