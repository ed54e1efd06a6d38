"""Find the records of the jobs that the user names, and connect to the hosts of the jobs."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from toolkit.errors import ToolkitError
from toolkit.job.places import Where, where_of
from toolkit.launch.tracking import records
from toolkit.model.job import FINAL_STATES, JobRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.model.progress import Tell
    from toolkit.run.command import Runner

_LIST_SECONDS = 10.0
"""Seconds for which `toolkit jobs list` waits for an answer of Slurm."""

_PLACES_AT_ONCE = 8


def on_damage(tell: "Tell") -> "Callable[[str], None]":
    """Return a function that shows which damaged record is skipped."""
    return lambda message: tell.notice(f"warning: skipped {message}")


def find(job: str | None, tell: "Tell") -> JobRecord:
    """Find a record as :func:`records.find` does, and show which damaged records it skips."""
    return records.find(job, on_damage(tell))


def find_all(jobs: Iterable[str], tell: "Tell") -> list[JobRecord]:
    """Return the records that ``jobs`` names, each once; the last record if ``jobs`` is empty."""
    found = [find(job, tell) for job in jobs] or [find(None, tell)]
    return list({record.key: record for record in found}.values())


def by_place(found: Iterable[JobRecord]) -> dict[Where, list[JobRecord]]:
    """Return the records of jobs that have not ended, by the host of the job."""
    places: dict[Where, list[JobRecord]] = {}
    for record in found:
        if record.state not in FINAL_STATES:
            places.setdefault(where_of(record), []).append(record)
    return places


def refresh_everywhere(found: list[JobRecord]) -> list[tuple[JobRecord, bool]]:
    """Refresh the records of jobs that have not ended, on all hosts at once.

    Return each record, and whether its host answered.
    """
    places = by_place(found)
    if not places:
        return [(record, True) for record in found]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_PLACES_AT_ONCE) as pool:
        looked = {r.key: (r, ok) for place in pool.map(_look, places.values()) for r, ok in place}
    return [looked.get(record.key, (record, True)) for record in found]


def refresh_record(record: JobRecord) -> JobRecord:
    """Return the record after a query of Slurm; the record of a job that has ended is unchanged."""
    if record.state in FINAL_STATES:
        return record
    from toolkit.launch.tracking import jobs

    with connect_to_job(record) as runner:
        return jobs.refresh(runner, record)[0]


@contextlib.contextmanager
def connect_to_job(record: JobRecord) -> Iterator["Runner"]:
    """Yield a runner for the host of a job.

    Raises:
        Missing: if the host is unreachable.
    """
    runner = where_of(record).open()
    try:
        yield runner
    finally:
        runner.close()


@contextlib.contextmanager
def connect_with_retries(record: JobRecord, tell: "Tell") -> Iterator["Runner"]:
    """Yield a runner as :func:`connect_to_job` does, and retry an unreachable host for some minutes.

    Raises:
        Missing: if the host refuses the login, or stays unreachable.
    """
    from toolkit.run.patience import AWAY_SECONDS, Patient, patiently, tell_of_loss

    lost = tell_of_loss(tell)
    runner = patiently(where_of(record).open, lost, AWAY_SECONDS)
    try:
        yield Patient(runner, lost, AWAY_SECONDS)
    finally:
        runner.close()


def _look(there: list[JobRecord]) -> list[tuple[JobRecord, bool]]:
    """Ask about the jobs of one host over one connection, until the host no longer answers."""
    from toolkit.launch.tracking import jobs

    with contextlib.suppress(ToolkitError), connect_to_job(there[0]) as runner:
        return jobs.refresh_all(runner, there, _LIST_SECONDS)
    return [(record, False) for record in there]
