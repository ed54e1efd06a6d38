"""Follow a job on the screen, and say in words how it ended and why."""

import click

from toolkit.engine.explain import explain, suspects
from toolkit.errors import CheckFailed, Interrupted, Missing
from toolkit.launch import output, records
from toolkit.launch.follow import follow
from toolkit.launch.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.progress import Tell
from toolkit.run.command import Runner


def watch_job(runner: Runner, record: JobRecord, tell: Tell, *, quiet: bool = False) -> JobRecord:
    """Show the output of a job until its end, and return its final record.

    Raises:
        Interrupted: on Ctrl-C, which leaves the job as it is and says how to come back.
        Missing: if the place, or Slurm there, is not reached any more; the same holds.
    """
    last: list[JobStatus] = []

    def on_state(status: JobStatus) -> None:
        shown = (status.state, status.reason, status.answer)
        changed = not last or shown != (last[-1].state, last[-1].reason, last[-1].answer)
        if changed and status.state not in FINAL_STATES:
            tell.step(f"Job {record.id} {_state_in_words(status)}")
        last[:] = [status]

    def on_line(line: str) -> None:
        if not quiet:
            click.echo(output.shown(line))

    try:
        return follow(runner, record, on_line, on_state)
    except Missing as error:
        # "Run it again", which a lost connection is told with, would launch a second job.
        raise Missing(
            f"job {record.id} goes on, but {runner.place} is not reached any more",
            fix=f"toolkit jobs logs --follow {record.key}",
            detail=[error.message],
        ) from error
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped following; job {record.id} goes on",
            fix=f"toolkit jobs logs --follow {record.key}   (to end it: toolkit jobs cancel {record.key})",
        ) from None


def conclude(record: JobRecord, tell: Tell) -> None:
    """Say how a job ended.

    Raises:
        CheckFailed: if it did not complete, with the failing rank's last lines, the cause and the fix.
    """
    if record.state != "completed":
        raise failure(record)
    tell.step(f"Job {record.id or record.key} is complete; for its figures: toolkit report {record.key}")


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
        word = "so" if finding.severity == "info" else "cause"
        detail.append(f"{word}: {finding.title} ({finding.id})")
        detail += [f"    {line}" for line in finding.evidence[:2]]
    if not findings and not first and (looks := suspects(text)):
        detail += [
            "no cause is recognised; the last lines that look like errors:",
            *(f"    {x}" for x in looks),
        ]
    if record.forced:
        detail.append(f"this was forced; the prediction for {record.mode} was '{record.predicted}'")
    code = f", exit code {record.exit_code}" if record.exit_code is not None else ""
    fixes = [f.fix for f in findings if f.fix]
    how = "ended as" if record.state in FINAL_STATES else "is"
    return CheckFailed(
        f"job {record.id or record.key} {how} {record.state}{code}",
        fix=fixes[0] if fixes else f"read all of its output: toolkit jobs logs {record.key}",
        detail=detail,
    )


def _state_in_words(status: JobStatus) -> str:
    if status.answer == "silent":
        return "goes on as far as is known; Slurm does not answer just now, and is asked again"
    if status.state == "pending":
        return f"waits: {status.reason}" if status.reason else "waits"
    if status.state == "running":
        return f"runs on {status.nodes}" if status.nodes else "runs"
    return "is in a state that Slurm does not tell"
