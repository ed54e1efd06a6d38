"""Find the records that a person names, and ask the places where their jobs run."""

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
"""How long the list waits for one answer of Slurm; it is a look, not an inquiry."""

_PLACES_AT_ONCE = 8


def on_damage(tell: "Tell") -> "Callable[[str], None]":
    """Return a function that shows which damaged record is skipped."""
    return lambda message: tell.notice(f"warning: skipped {message}")


def find(job: str | None, tell: "Tell") -> JobRecord:
    """Find a record as :func:`records.find` does, and show which damaged ones are skipped."""
    return records.find(job, on_damage(tell))


def find_all(jobs: Iterable[str], tell: "Tell") -> list[JobRecord]:
    """Find each of several, once; the last one launched if none is named."""
    found = [find(job, tell) for job in jobs] or [find(None, tell)]
    return list({record.key: record for record in found}.values())


def by_place(found: Iterable[JobRecord]) -> dict[Where, list[JobRecord]]:
    """Sort records of jobs that go on by where they run."""
    places: dict[Where, list[JobRecord]] = {}
    for record in found:
        if record.state not in FINAL_STATES:
            places.setdefault(where_of(record), []).append(record)
    return places


def looked_after(found: list[JobRecord]) -> list[tuple[JobRecord, bool]]:
    """Refresh the records of jobs that go on, all places at once, and say of each whether it was reached."""
    places = by_place(found)
    if not places:
        return [(record, True) for record in found]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_PLACES_AT_ONCE) as pool:
        looked = {r.key: (r, ok) for place in pool.map(_look, places.values()) for r, ok in place}
    return [looked.get(record.key, (record, True)) for record in found]


def refreshed(record: JobRecord) -> JobRecord:
    """Ask about one job, unless it has ended."""
    if record.state in FINAL_STATES:
        return record
    from toolkit.launch.tracking import jobs

    with reached(record) as runner:
        return jobs.refresh(runner, record)[0]


@contextlib.contextmanager
def reached(record: JobRecord) -> Iterator["Runner"]:
    """Give what runs commands where the job was launched.

    Raises:
        Missing: if the place is not reached.
    """
    runner = where_of(record).opened()
    try:
        yield runner
    finally:
        runner.close()


@contextlib.contextmanager
def reached_in_time(record: JobRecord, tell: "Tell") -> Iterator["Runner"]:
    """Do as :func:`reached` for questions that can wait: a place that is away is waited for.

    Raises:
        Missing: if it refuses, or is away for minutes.
    """
    from toolkit.run.patience import AWAY_SECONDS, Patient, patiently, telling

    lost = telling(tell)
    runner = patiently(where_of(record).opened, lost, AWAY_SECONDS)
    try:
        yield Patient(runner, lost, AWAY_SECONDS)
    finally:
        runner.close()


def _look(there: list[JobRecord]) -> list[tuple[JobRecord, bool]]:
    """Ask about the jobs of one place over one connection, until it does not answer any more."""
    from toolkit.launch.tracking import jobs

    with contextlib.suppress(ToolkitError), reached(there[0]) as runner:
        return jobs.refresh_all(runner, there, _LIST_SECONDS)
    return [(record, False) for record in there]
