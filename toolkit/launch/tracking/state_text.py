"""Describe the state of a job in a sentence."""

from toolkit.launch.tracking.reasons import describe_reason as reason_in_words
from toolkit.launch.tracking.slurm import JobStatus
from toolkit.model.job import JobRecord
from toolkit.probe.hostlist import expand

_WIDE = 60
"""The maximum length, in characters, of a node list that toolkit shows in full."""


def sentence(status: JobStatus, name: str) -> str:
    """Return a sentence with the state of a job and, if the job waits, with advice.

    ``name`` is the number or the key of the job.
    """
    advice = todo(status, name)
    return f"Job {name} {describe_state(status)}{'; ' if advice else ''}{advice}"


def describe_state(status: JobStatus) -> str:
    """Return the state of a job as the predicate of a sentence, such as ``runs on node1``."""
    if status.answer == "silent":
        return "may still wait or run; Slurm does not answer, and toolkit asks again"
    if status.state == "pending":
        return _waits(status)
    if status.state == "running":
        where = f"runs on {nodes(status.nodes)}" if status.nodes else "runs"
        return f"{where}, {times(status.restarts)}" if status.restarts else where
    return "is in an unknown state"


def nodes(names: str) -> str:
    """Return a node list as text; for a long list, only the number of nodes and the first and last node."""
    if len(names) <= _WIDE:
        return names
    every = expand(names)
    return f"{len(every)} nodes, {every[0]} to {every[-1]}"


def times(restarts: int) -> str:
    """Return the number of restarts in words, such as ``started again 2 times``."""
    return f"started again {'once' if restarts == 1 else f'{restarts} times'}"


def describe_resumption(record: JobRecord) -> str:
    """Return a sentence that says which job wrote a checkpoint, and which job resumes from this checkpoint.

    The caller writes the word "Job" before the sentence.
    """
    before = record.numbers[-2] if len(record.numbers) > 1 else "the previous job"
    return (
        f"{before} wrote a checkpoint and stopped before its time limit; "
        f"job {record.id} resumes from the checkpoint"
    )


def _waits(status: JobStatus) -> str:
    text = "waits for a restart" if status.restarts else "waits"
    place, of = status.place
    if place:
        text += f", place {place} of {of} in the queue"
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
    """Return the advice for a waiting job, or an empty string; ``number`` is the number or key of the job."""
    if status.state != "pending" or not status.reason:
        return ""
    return reason_in_words(status.reason).todo.replace("NUMBER", number)
