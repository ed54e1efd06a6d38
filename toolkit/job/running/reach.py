"""Find the records of the jobs that the user names, and connect to the hosts of the jobs."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from toolkit.errors import ToolkitError
from toolkit.job.places import HostOptions, host_options_of
from toolkit.launch.tracking import records
from toolkit.model.job import FINAL_STATES, JobRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.model.progress import Tell
    from toolkit.run.command import Runner

_LIST_SECONDS = 10.0
"""The time in seconds that ``toolkit jobs list`` waits for Slurm's answer."""

_PLACES_AT_ONCE = 8


def on_damage(tell: "Tell") -> "Callable[[str], None]":
    """Return a function that warns about a damaged job record. toolkit skips this record."""
    return lambda message: tell.notice(f"warning: skipped {message}")


def find(job: str | None, tell: "Tell") -> JobRecord:
    """Return the record of a job. ``job`` is its key or Slurm job ID, or ``None`` for the last job.
    Print a warning for each damaged record.
    """
    return records.find(job, on_damage(tell))


def find_all(jobs: Iterable[str], tell: "Tell") -> list[JobRecord]:
    """Return the records of ``jobs`` without duplicates, or the last job's record if ``jobs`` is empty."""
    job_records = [find(job, tell) for job in jobs] or [find(None, tell)]
    return list({record.key: record for record in job_records}.values())


def by_place(job_records: Iterable[JobRecord]) -> dict[HostOptions, list[JobRecord]]:
    """Return the records of jobs that have not ended, grouped by host."""
    places: dict[HostOptions, list[JobRecord]] = {}
    for record in job_records:
        if record.state not in FINAL_STATES:
            places.setdefault(host_options_of(record), []).append(record)
    return places


def refresh_everywhere(job_records: list[JobRecord]) -> list[tuple[JobRecord, bool]]:
    """Ask Slurm on several hosts in parallel about the jobs that have not ended.

    Returns:
        each record with its current state, and whether Slurm on the job's host answered. For a job that
        had already ended, the second value is true.
    """
    places = by_place(job_records)
    if not places:
        return [(record, True) for record in job_records]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_PLACES_AT_ONCE) as pool:
        looked = {r.key: (r, ok) for place in pool.map(_look, places.values()) for r, ok in place}
    return [looked.get(record.key, (record, True)) for record in job_records]


def refresh_record(record: JobRecord) -> JobRecord:
    """Return the record with its current state from Slurm; the record of an ended job is unchanged."""
    if record.state in FINAL_STATES:
        return record
    from toolkit.launch.tracking import jobs

    with connect_to_job(record) as runner:
        return jobs.refresh(runner, record)[0]


@contextlib.contextmanager
def connect_to_job(record: JobRecord) -> Iterator["Runner"]:
    """Yield a runner, which runs commands on the host of a job.

    Raises:
        Missing: if the host is unreachable.
    """
    runner = host_options_of(record).open()
    try:
        yield runner
    finally:
        runner.close()


@contextlib.contextmanager
def connect_with_retries(record: JobRecord, tell: "Tell") -> Iterator["Runner"]:
    """Yield a runner for commands on a job's host. toolkit retries an unreachable host for five minutes.

    Raises:
        Missing: if the host refuses the login, or stays unreachable.
    """
    from toolkit.run.patience import AWAY_SECONDS, PatientRunner, patiently, tell_of_loss

    lost = tell_of_loss(tell)
    runner = patiently(host_options_of(record).open, lost, AWAY_SECONDS)
    try:
        yield PatientRunner(runner, lost, AWAY_SECONDS)
    finally:
        runner.close()


def _look(job_records: list[JobRecord]) -> list[tuple[JobRecord, bool]]:
    """Ask Slurm about all jobs of one host. Return each record, and whether Slurm answered. If the host is
    unreachable, the records are unchanged.
    """
    from toolkit.launch.tracking import jobs

    with contextlib.suppress(ToolkitError), connect_to_job(job_records[0]) as runner:
        return jobs.refresh_all(runner, job_records, _LIST_SECONDS)
    return [(record, False) for record in job_records]
