"""Show the output and the state of a running job, then its result and the cause of a failure."""

import contextlib
import sys
import time

from toolkit.errors import CheckFailed, Interrupted, Missing
from toolkit.job.running.fetch import in_words, list_results
from toolkit.launch.request import sweep_values
from toolkit.launch.tracking import arrays, jobs, output, pace, records, state_text
from toolkit.launch.tracking.follow import follow
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.launch.tracking.worlds import all_alone, same_epochs
from toolkit.model.finding import ADVICE, KnownFault, OutputExplanation
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.progress import Tell
from toolkit.run.command import Runner
from toolkit.study.figures import history

_MOST_SHOWN = 5
_PLAIN_SECONDS = 60.0
"""The shortest time in seconds between two progress lines, if standard error is not a terminal."""


def watch_job(runner: Runner, record: JobRecord, tell: Tell, *, quiet: bool = False) -> JobRecord:
    """Show the output of a job until the job ends, and return its final record.

    With ``quiet``, toolkit does not show the output.

    Raises:
        Interrupted: on Ctrl-C; the job continues, and the error shows how to follow the job again.
        Missing: if the host or Slurm does not answer for ten minutes; the job may still run.
    """
    watch = _Watch(record, tell, quiet=quiet)
    try:
        ended = follow(
            runner,
            record,
            watch.line,
            watch.state,
            on_metrics=watch.metrics,
            on_resume=watch.again,
            on_lost=watch.lost,
        )
        _say_results(runner, ended, tell)
    except Missing as error:
        # Replace the hint "run the command again", because `toolkit launch` would submit a second job.
        raise Missing(
            f"{runner.place} is unreachable; job {watch.name} may still run",
            fix=f"when the host answers again: `toolkit jobs logs --follow {record.key}`",
            detail=[error.message],
        ) from error
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped following; job {watch.name} still runs",
            fix=f"follow again: `toolkit jobs logs --follow {record.key}`   (to cancel the job: "
            f"`toolkit jobs cancel {record.key}`)",
        ) from None
    return ended


def _say_results(runner: Runner, record: JobRecord, tell: Tell) -> None:
    """Show the files that a completed job wrote; ignore an error if toolkit cannot list the files."""
    if record.state != "completed":
        return
    with contextlib.suppress(CheckFailed, Missing):
        if line := in_words(record, list_results(runner, record)):
            tell.step(line)


class _Watch:
    """Print the changes of a job's state and the progress of its training.

    toolkit updates the progress continuously in a terminal, and prints it at most once a minute elsewhere.
    """

    def __init__(self, record: JobRecord, tell: Tell, *, quiet: bool) -> None:
        self.name = record.id or record.key
        self._tell, self._quiet = tell, quiet
        self._live = sys.stderr.isatty()
        self._said: object = None
        self._status: JobStatus | None = None
        self._tasks, self._ended = len(arrays.indexes(record.spec.array)), 0
        self._done, self._since, self._told = 0, time.monotonic(), float("-inf")

    def line(self, text: str) -> None:
        if not self._quiet:
            self._tell.output(output.displayed_line(text))

    def state(self, status: JobStatus) -> None:
        # Ignore the expected start time of the job, because Slurm changes this time every minute.
        shown = (status.state, status.reason, status.answer, status.place, status.restarts)
        if shown != self._said and status.state not in FINAL_STATES and status.answer != "forgotten":
            self._tell.step(state_text.sentence(status, self.name))
        self._said, self._status = shown, status
        # Slurm stops listing an array task some minutes after the task's end.
        # Count a task as ended if Slurm does not list the task as waiting or running.
        ended = self._tasks - sum(task.state not in FINAL_STATES for task in status.tasks)
        if status.tasks and ended > self._ended:
            self._ended = ended
            self._tell.step(f"Job {self.name}: {ended} of {self._tasks} tasks have ended")

    def metrics(self, content: bytes) -> None:
        running = self._status is not None and self._status.state == "running"
        moment = time.monotonic()
        if not running or (now := pace.pace(content)) is None:
            if running and self._live:
                self._tell.detail(
                    f"no metrics yet; toolkit has followed the job for {moment - self._since:.0f} s"
                )
            return
        new = now.complete_epochs != self._done
        if new:
            self._done, self._since = now.complete_epochs, moment
        if self._live:
            self._tell.detail(pace.describe_pace(now, moment - self._since))
        elif new and now.complete_epochs and moment - self._told >= _PLAIN_SECONDS:
            self._told = moment
            self._tell.step(f"Job {self.name}: {pace.describe_pace(now)}")

    def again(self, record: JobRecord) -> None:
        self._tell.step(f"Job {state_text.describe_resumption(record)}")
        self.name, self._said = record.id, None

    def lost(self, reason: str) -> None:
        self._tell.step(f"{reason}; job {self.name} may still run, and toolkit reconnects")


def conclude(record: JobRecord, tell: Tell) -> None:
    """Print that a job has completed.

    Raises:
        CheckFailed: if the job ended without success, or has not ended. The error has the last lines of the
            failed rank's output, the cause and the fix.
    """
    if record.state != "completed":
        raise failure(record)
    text = jobs.kept_output(record) if record.spec.unsure else ""
    if epoch := same_epochs(text, record.spec.ranks):
        tell.notice(
            f"each of the {record.spec.ranks} ranks reports `{epoch}`; if the ranks do not communicate "
            f"with each other, the job trained {record.spec.ranks} separate models"
        )
    figures = f"; to see its metrics: toolkit report {record.key}" if _has_figures(record) else ""
    tell.step(f"Job {record.id or record.key} is complete{figures}")


def _has_figures(record: JobRecord) -> bool:
    """Return whether ``toolkit report`` can show the performance of a job, from its metrics or its output."""
    if record.spec.sweep or (records.folder(record.key) / records.METRICS).is_file():
        return True
    return not record.tasks and bool(history(jobs.kept_output(record)))


def failure(record: JobRecord) -> CheckFailed:
    """Return the error of a job that did not complete: the rank that failed first, the cause, and the fix.

    toolkit finds the rank and the cause in the copy of the job's output on this machine.
    """
    from toolkit.engine.logs.explanation import causes  # slow import, needed only for a failed job
    from toolkit.job import explanation

    resume = f"resume the job from the checkpoint: `toolkit jobs resume {record.key}`"
    if record.exit_code == jobs.STOPPED_STATUS:
        return CheckFailed(
            f"job {record.id or record.key} wrote a checkpoint and stopped before its time limit; "
            "Slurm does not restart it",
            fix=resume,
        )
    if record.state == "cancelled":
        return CheckFailed(
            f"job {record.id or record.key} was cancelled",
            fix=resume if _has_checkpoint(record) else "",
        )
    text = jobs.kept_output(record)
    if all_alone(text, record):
        return _world_of_one_error(record)
    output_explanation = explanation.of_job(record)
    detail = [*_failed_tasks(record), *_failed_rank(text)]
    known = causes(output_explanation.findings)
    detail += _cause(output_explanation, known)
    if _has_checkpoint(record):
        detail.append(f"to resume from the last checkpoint: toolkit jobs resume {record.key}")
    if record.forced:
        detail.append(f"you forced mode {record.mode}, although toolkit predicted '{record.predicted}'")
    code = f", exit code {record.exit_code}" if record.exit_code is not None else ""
    fixes = [step for finding in known for step in finding.fix.splitlines()]
    fixes = fixes or list(output_explanation.fault.fix if output_explanation.fault else ())
    how = "ended as" if record.state in FINAL_STATES else "is"
    return CheckFailed(
        f"job {record.id or record.key} {how} {record.state}{code}",
        fix=fixes[0] if fixes else f"read all output of the job: `toolkit jobs logs {record.key}`",
        detail=detail,
    )


def _failed_rank(text: str) -> list[str]:
    """Return lines that name the rank that failed first, and the last lines of this rank's output.

    If the output shows only that Slurm killed all ranks together, return a line that says so. If the output
    shows neither, return an empty list.
    """
    if first := output.first_failure(text):
        named = f"rank {first.rank} on {first.node} failed first: {first.reason}"
        return [f"{named}; the last lines of its output:", *(f"    {line}" for line in first.last_lines)]
    if output.killed_together(text):
        return ["Slurm killed all ranks together; its messages do not show which rank failed first"]
    return []


def _failed_tasks(record: JobRecord) -> list[str]:
    """Return a line that lists the failed tasks of an array, and a line with a command to rerun them."""
    failed = [task.index for task in record.tasks if task.state in {"failed", "timeout", "cancelled"}]
    if not failed:
        return []
    values = sweep_values.rows(record.spec.sweep)
    shown = ", ".join(
        f"{index} ({sweep_values.describe_values(values[index])})" if index < len(values) else str(index)
        for index in failed[:_MOST_SHOWN]
    )
    more = f" and {len(failed) - _MOST_SHOWN} more" if len(failed) > _MOST_SHOWN else ""
    numbers = ",".join(map(str, failed))
    return [
        f"{len(failed)} of {len(record.tasks)} tasks failed: {shown}{more}",
        f"to run the failed tasks again: toolkit launch --from-job {record.key} --array {numbers}",
    ]


def _cause(output_explanation: OutputExplanation, faults: list[KnownFault]) -> list[str]:
    """Return lines with the first error in the output, its causes, and advice on a retry.

    If toolkit knows no cause, a line with the general class of the error replaces the causes. If no line
    of the output reports a failure, return a line for each message in the output that toolkit recognises.
    """
    if output_explanation.root is None or output_explanation.fault is None:
        return [f"consequence: {finding.title} ({finding.id})" for finding in output_explanation.findings]
    lines = [f"line {output_explanation.root.number}: {output_explanation.root.text}"]
    lines += [f"cause: {finding.title} ({finding.id})" for finding in faults]
    if not faults:
        lines.append(f"{output_explanation.fault.title} ({output_explanation.fault.id})")
    return [*lines, *([ADVICE[output_explanation.retry]] if output_explanation.retry else [])]


def _world_of_one_error(record: JobRecord) -> CheckFailed:
    """Return the error of a job in which each rank started as a world of size 1."""
    code = f", exit code {record.exit_code}" if record.exit_code is not None else ""
    return CheckFailed(
        f"job {record.id or record.key} is {record.state}{code}: "
        f"each of its {record.spec.ranks} ranks reports a world of size 1",
        fix=f"use the launch mode that `toolkit doctor {record.spec.image} -- COMMAND` names",
        detail=[f"toolkit predicted '{record.predicted}' for launch mode {record.mode}"],
    )


def _has_checkpoint(record: JobRecord) -> bool:
    """Return whether a trainer finished an epoch in the job; trainers write a checkpoint after each epoch."""
    try:
        metrics = (records.folder(record.key) / records.METRICS).read_bytes()
    except OSError:
        return False
    return bool(record.spec.trainer) and b'"record": "epoch"' in metrics
