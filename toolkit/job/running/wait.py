"""Wait for several jobs on several hosts, and show how each job ended."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from toolkit.errors import CheckFailed, Interrupted, Lost
from toolkit.job.places import HostOptions
from toolkit.job.running.reach import by_place
from toolkit.launch.tracking import jobs, state_text
from toolkit.launch.tracking.reasons import waits_for_turn
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.job import FINAL_STATES, JobRecord
from toolkit.model.progress import Tell
from toolkit.run.patience import tell_of_loss

if TYPE_CHECKING:
    from toolkit.run.command import Runner

_FIRST_PAUSE, _LAST_PAUSE = 1.0, 15.0
"""The first and the longest pause, in seconds, between two queries of all hosts."""

_PATIENCE_SECONDS = 600.0
"""The time in seconds for which toolkit retries an unreachable host."""


def wait_for(jobs_to_end: Sequence[JobRecord], tell: Tell, *, first: bool = False) -> list[JobRecord]:
    """Wait until all jobs have ended or, with ``first``, until at least one has; return the ended jobs.

    Raises:
        Missing: if a host or its Slurm does not answer for ten minutes, or the host refuses the login.
        Interrupted: on Ctrl-C; the jobs continue.
    """
    now = {record.key: record for record in jobs_to_end}
    left = {record.key for record in jobs_to_end if record.state not in FINAL_STATES}
    hosts: dict[HostOptions, _Host] = {}
    reasons = _Reasons(tell)
    pause = _FIRST_PAUSE
    try:
        while left and not (first and len(left) < len(now)):
            for place, job_records in by_place(record for key, record in now.items() if key in left).items():
                for record, answered in hosts.setdefault(place, _Host(place, tell, reasons)).look(
                    job_records
                ):
                    now[record.key] = record
                    # If Slurm has deleted a job from its list, and the job wrote no exit status, the state is
                    # "unknown" and never changes. Therefore, do not wait any longer for this job.
                    if record.state in FINAL_STATES or (answered and record.state == "unknown"):
                        left.remove(record.key)
                        tell.step(f"Job {record.id or record.key} ended as {record.state}")
            if left and not (first and len(left) < len(now)):
                tell.detail(f"{len(left)} of {len(now)} jobs have not ended")
                time.sleep(pause)
                pause = min(pause * 1.5, _LAST_PAUSE)
        return [record for key, record in now.items() if key not in left]
    except KeyboardInterrupt:
        raise Interrupted(
            "stopped waiting; the jobs continue", fix="list the jobs: `toolkit jobs list`"
        ) from None
    finally:
        for host in hosts.values():
            host.close()


def outcome(
    ended_jobs: Sequence[JobRecord], failure: Callable[[JobRecord], CheckFailed]
) -> CheckFailed | None:
    """Return one error for all jobs that did not complete, or ``None`` if all jobs completed.

    ``failure`` returns the error of one job.
    """
    bad = [record for record in ended_jobs if record.state != "completed"]
    if not bad:
        return None
    whys = [failure(record) for record in bad]
    if len(bad) == 1:
        return whys[0]
    detail = [line for why in whys for line in (f"{why.message}:", *(f"    {x}" for x in why.detail))]
    return CheckFailed(
        f"{len(bad)} of {len(ended_jobs)} jobs did not complete", fix=whys[0].fix, detail=detail
    )


class _Reasons:
    """Print why jobs wait in the queue. Print each reason only once, and omit ordinary waits for nodes."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._said: set[str] = set()

    def seen(self, record: JobRecord, status: JobStatus) -> None:
        reason = status.reason
        if status.state != "pending" or not reason or waits_for_turn(reason) or reason in self._said:
            return
        self._said.add(reason)
        self._tell.step(state_text.sentence(status, record.id or record.key))


class _Host:
    """A host on which jobs run, and toolkit's connection to this host."""

    def __init__(self, place: HostOptions, tell: Tell, reasons: _Reasons) -> None:
        self._place, self._tell, self._reasons = place, tell, reasons
        self._runner: Runner | None = None
        self._reached = time.monotonic()
        self._told = False

    def look(self, job_records: Sequence[JobRecord]) -> list[tuple[JobRecord, bool]]:
        """Ask Slurm about jobs on this host. Return each record, and whether Slurm answered about its job."""
        try:
            self._runner = self._runner or self._place.open()
            looked = jobs.refresh_all(self._runner, job_records, on_status=self._reasons.seen)
        except Lost as error:
            self.close()
            self._note_lost(error)
            return [(record, False) for record in job_records]
        if any(answered for _, answered in looked):
            self._reached, self._told = time.monotonic(), False
        else:
            self._note_lost(Lost(f"Slurm on {self._runner.place} does not answer"))
        return looked

    def close(self) -> None:
        if self._runner:
            self._runner.close()
            self._runner = None

    def _note_lost(self, error: Lost) -> None:
        if time.monotonic() - self._reached > _PATIENCE_SECONDS:
            raise Lost(error.message, fix="check whether the jobs still run: `toolkit jobs list`") from error
        if not self._told:
            self._told = True
            tell_of_loss(self._tell)(error.message)
