"""What Slurm says of a job, as a sentence for the person who waits for it."""

from toolkit.launch.tracking.reasons import in_words as reason_in_words
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.job import JobRecord
from toolkit.probe.hostlist import expand

_WIDE = 60
"""Characters of a list of nodes that are read at a glance."""


def sentence(status: JobStatus, name: str) -> str:
    """Say how a job is, and what can be done about it, as a sentence of its own; ``name`` is its number."""
    advice = todo(status, name)
    return f"Job {name} {in_words(status)}{'; ' if advice else ''}{advice}"


def in_words(status: JobStatus) -> str:
    """Say the state of a job, as the end of a sentence that begins with its name."""
    if status.answer == "silent":
        return "goes on as far as is known; Slurm does not answer just now, and is asked again"
    if status.state == "pending":
        return _waits(status)
    if status.state == "running":
        where = f"runs on {nodes(status.nodes)}" if status.nodes else "runs"
        return f"{where}, {times(status.restarts)}" if status.restarts else where
    return "is in a state that Slurm does not tell"


def nodes(names: str) -> str:
    """Write a list of nodes short: of many that do not fold well, how many they are and the first of them."""
    if len(names) <= _WIDE:
        return names
    every = expand(names)
    return f"{len(every)} nodes, {every[0]} to {every[-1]}"


def times(restarts: int) -> str:
    """Say how often a job was started again."""
    return f"started again {'once' if restarts == 1 else f'{restarts} times'}"


def again_in_words(record: JobRecord) -> str:
    """Say of a job that stopped in time that it goes on, and under which number."""
    before = record.numbers[-2] if len(record.numbers) > 1 else "the job before"
    return f"{before} stopped before its time was up, with a checkpoint; job {record.id} goes on from it"


def _waits(status: JobStatus) -> str:
    said = "waits to be started again" if status.restarts else "waits"
    place, of = status.place
    if place:
        said += f", place {place} of {of}"
    if status.reason:
        waiting = reason_in_words(status.reason)
        if waiting.never:
            said += ", and will not start by itself"
        said += f": {waiting.why} ({status.reason.partition(',')[0]})"
    if status.started:
        said += f"; expected to start {clock(status.started)}, the cluster's time"
    return said


def clock(time: str) -> str:
    """Write a time of Slurm's, ``2026-11-21T19:00:12``, to the minute."""
    return time.replace("T", " ")[:16]


def todo(status: JobStatus, number: str) -> str:
    """Say what a person can do about a job that waits; empty where that is nothing."""
    if status.state != "pending" or not status.reason:
        return ""
    return reason_in_words(status.reason).todo.replace("NUMBER", number)
