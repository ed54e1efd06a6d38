"""Cancel one or several jobs. If one job cannot be cancelled, toolkit continues with the next job."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from toolkit.errors import CheckFailed, Missing, ToolkitError
from toolkit.job.running.reach import connect_to_job
from toolkit.launch.tracking import jobs
from toolkit.model.job import FINAL_STATES, JobRecord


class CancelResult(NamedTuple):
    """The record of a job that toolkit tried to cancel, and a phrase about the job, such as ``is cancelled``.

    If the cancellation failed, ``message`` is empty, and ``error`` is the reason.
    """

    record: JobRecord
    message: str
    error: ToolkitError | None = None

    @property
    def was_reached(self) -> bool:
        """Whether toolkit reached the job's host."""
        return not isinstance(self.error, Missing)


def cancel_all(job_records: Iterable[JobRecord], say: Callable[[CancelResult], None]) -> list[CancelResult]:
    """Try to cancel each job, and return a result for each job.

    Call ``say`` with each result that contains no error.
    """
    tried = []
    for record in job_records:
        try:
            result = cancel(record)
            say(result)
        except (CheckFailed, Missing) as error:
            result = CancelResult(record, "", error)
        tried.append(result)
    return tried


def failure(results: Sequence[CancelResult]) -> ToolkitError | None:
    """Return one error for all jobs whose cancellation failed, or ``None`` if no cancellation failed."""
    bad = [(result.record, result.error) for result in results if result.error]
    if not bad:
        return None
    (record, first), *more = bad
    kind = Missing if all(isinstance(error, Missing) for _, error in bad) else CheckFailed
    if len(results) == 1:
        return first
    if not more:
        return kind(f"{record.key} was not cancelled: {first.message}", fix=first.fix, detail=first.detail)
    lines = [f"{record.key}: {error.message}" for record, error in bad]
    return kind(f"{len(bad)} of {len(results)} jobs were not cancelled", fix=first.fix, detail=lines)


def cancel(record: JobRecord) -> CancelResult:
    """Cancel a job, unless the job has already ended.

    Raises:
        CheckFailed: if Slurm refuses the cancellation.
        Missing: if the host of the job is unreachable.
    """
    if record.state not in FINAL_STATES:
        with connect_to_job(record) as runner:
            record, _ = jobs.refresh(runner, record)
            if record.state not in FINAL_STATES:
                record = jobs.cancel(runner, record)
                return CancelResult(record, _describe_cancel(record))
    return CancelResult(record, f"has already ended: {record.state}")


def _describe_cancel(record: JobRecord) -> str:
    return "is cancelled" if record.state == "cancelled" else f"is being cancelled (now {record.state})"
