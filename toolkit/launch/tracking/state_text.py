"""Describe the state of a job in a sentence."""

from toolkit.launch.tracking.reasons import describe_reason as reason_in_words
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.job import JobRecord
from toolkit.probe.hostlist import expand

_WIDE = 60
"""The largest number of characters of a node list that toolkit shows in full."""


def sentence(status: JobStatus, name: str) -> str:
    """Return a sentence with the state of a job, and advice; ``name`` is the job's number or key."""
    advice = todo(status, name)
    return f"Job {name} {describe_state(status)}{'; ' if advice else ''}{advice}"


def describe_state(status: JobStatus) -> str:
    """Return the state of a job as a predicate, such as ``runs on node1``."""
    if status.answer == "silent":
        return "is probably still running; Slurm does not answer, and toolkit asks again"
    if status.state == "pending":
        return _waits(status)
    if status.state == "running":
        where = f"runs on {nodes(status.nodes)}" if status.nodes else "runs"
        return f"{where}, {times(status.restarts)}" if status.restarts else where
    return "is in an unknown state"


def nodes(names: str) -> str:
    """Return a list of nodes as text; a long list becomes a number, the first node and the last node."""
    if len(names) <= _WIDE:
        return names
    every = expand(names)
    return f"{len(every)} nodes, {every[0]} to {every[-1]}"


def times(restarts: int) -> str:
    """Return words for the number of restarts, such as ``started again 2 times``."""
    return f"started again {'once' if restarts == 1 else f'{restarts} times'}"


def describe_resumption(record: JobRecord) -> str:
    """Return a sentence that names a job that stopped after a checkpoint, and the job that resumes from the
    checkpoint.
    """
    before = record.numbers[-2] if len(record.numbers) > 1 else "the previous job"
    return f"{before} wrote a checkpoint and stopped before its time limit; job {record.id} resumes from it"


def _waits(status: JobStatus) -> str:
    text = "waits for a restart" if status.restarts else "waits"
    place, of = status.place
    if place:
        text += f", place {place} of {of}"
    if status.reason:
        waiting = reason_in_words(status.reason)
        if waiting.never:
            text += " and will not start by itself"
        text += f": {waiting.why} ({status.reason.partition(',')[0]})"
    if status.started:
        text += f"; expected to start {clock(status.started)}, the cluster's time"
    return text


def clock(time: str) -> str:
    """Return a Slurm time such as ``2026-11-21T19:00:12`` without its seconds."""
    return time.replace("T", " ")[:16]


def todo(status: JobStatus, number: str) -> str:
    """Return the advice for a waiting job, or an empty string."""
    if status.state != "pending" or not status.reason:
        return ""
    return reason_in_words(status.reason).todo.replace("NUMBER", number)
