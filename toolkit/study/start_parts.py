"""Split the time from a job's submission to its first trained batch into phases."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

_LINE = re.compile(r"^(script|copy|copied|preflight|ranks|container) (\d{9,11}(?:[.,]\d+)?)$", re.MULTILINE)
_MARKS = ("container", "interpreter", "imports", "rendezvous", "first_batch")
"""The names of the times that a rank records. Each time is the end of the phase at the same position in
``_PARTS``.
"""
_PARTS = ("mount", "interpreter", "imports", "rendezvous", "first batch")


class StartPart(msgspec.Struct, frozen=True):
    """A phase of a job's start: its name and its duration in seconds. If the job did not record when one
    phase ended and the next phase began, toolkit reports both as one phase, such as ``mount and
    interpreter``.
    """

    part: str
    seconds: float


class JobStart(msgspec.Struct, frozen=True, kw_only=True):
    """The phases of a job's start.

    ``first_step_seconds`` is the time from the submission to the end of the first trained batch, or ``None``
    if the job recorded no trained batch. If the submission time is unknown, ``first_step_seconds`` counts
    from the start of the job script. ``preflight_seconds`` is 0 if the job ran no preflight.
    """

    schema: str = "toolkit.start/1"
    job: str
    nodes: int | None = None
    ranks: int | None = None
    parts: tuple[StartPart, ...]
    first_step_seconds: float | None = None
    preflight_seconds: float = 0.0
    reads: int | None = None
    """The number of read system calls of rank 0 before its first batch."""


def job_start(
    job: str,
    times: str,
    metrics: bytes,
    submission_time: float | None = None,
    size: tuple[int, int] | None = None,
) -> JobStart | None:
    """Return the phases of a job's start, or None if the job script recorded no times.

    Args:
        job: the key with which toolkit identifies the job.
        times: the content of the file ``start-times`` in the job's folder.
        metrics: the content of ``metrics.jsonl``, which may be empty.
        submission_time: the time of the submission in seconds since 1970, or None if unknown.
        size: the number of nodes and the number of ranks of the job, or None if unknown.
    """
    moments, reads = _moments(times, metrics)
    if submission_time is not None:
        moments["submitted"] = submission_time
    if "script" not in moments:
        return None
    parts = [*_of_script(moments), *_of_rank(moments)]
    begun, ended = moments.get("submitted", moments["script"]), moments.get("first_batch")
    preflight = next((part.seconds for part in parts if part.part == "preflight"), 0.0)
    return JobStart(
        job=job,
        nodes=size[0] if size else None,
        ranks=size[1] if size else None,
        parts=tuple(parts),
        first_step_seconds=None if ended is None else round(ended - begun, 3),
        preflight_seconds=preflight,
        reads=reads,
    )


def _moments(times: str, metrics: bytes) -> tuple[dict[str, float], int | None]:
    """Return the recorded times by name, in seconds since 1970, and the number of ``read`` system calls of
    rank 0 before its first batch.

    If the job script restarted the ranks, the result leaves out the times that the ranks recorded before the
    restart.
    """
    moments = {name: float(text.replace(",", ".")) for name, text in _LINE.findall(times)}
    rank = _of_metrics(metrics)
    reads = rank.pop("reads", None)
    begun = moments.get("ranks", float("inf"))
    if rank.get("interpreter", 0.0) >= begun - _CLOCK_SECONDS:
        moments = {**rank, **moments}
    if moments.get("container", begun) < begun - _CLOCK_SECONDS:
        del moments["container"]
    return moments, int(reads) if isinstance(reads, int) else None


_CLOCK_SECONDS = 0.5
"""The largest difference that toolkit accepts between the clocks of two nodes, in seconds."""


def _of_metrics(metrics: bytes) -> dict[str, float]:
    """Return the values in the last record of the kind ``start`` in the metrics."""
    lines = [line for line in metrics.split(b"\n") if b'"record": "start"' in line]
    try:
        record = msgspec.json.decode(lines[-1]) if lines else {}
    except msgspec.DecodeError:
        return {}
    names = {*_MARKS, "reads"}
    return {key: value for key, value in record.items() if key in names and isinstance(value, int | float)}


def _of_script(moments: Mapping[str, float]) -> list[StartPart]:
    """Return the phases before the ranks start: the queue, the job script, the copy of the image to the
    nodes, and the preflight.
    """
    parts = []
    if "submitted" in moments:
        parts.append(StartPart("queue", _seconds(moments, "submitted", "script")))
    if "ranks" not in moments:
        return parts
    copy = _seconds(moments, "copy", "copied") if {"copy", "copied"} <= moments.keys() else 0.0
    preflight = _seconds(moments, "preflight", "ranks") if "preflight" in moments else 0.0
    rest = _seconds(moments, "script", "ranks") - copy - preflight
    parts += [StartPart("job script", round(max(rest, 0.0), 3))]
    parts += [StartPart("copy", copy)] if copy else []
    return [*parts, *([StartPart("preflight", preflight)] if preflight else [])]


def _of_rank(moments: Mapping[str, float]) -> list[StartPart]:
    """Return the phases of rank 0's start, from the mount of the image to the end of the first batch. If
    rank 0 recorded no time between two phases, combine these phases. Return an empty list if the time at
    which the job script started the ranks is unknown.
    """
    order: Sequence[str] = ("ranks", *_MARKS)
    known = [place for place, name in enumerate(order) if name in moments]
    if not known or known[0]:
        return []
    return [
        StartPart(" and ".join(_PARTS[before:after]), _seconds(moments, order[before], order[after]))
        for before, after in pairwise(known)
    ]


def _seconds(moments: Mapping[str, float], start: str, end: str) -> float:
    return round(max(moments[end] - moments[start], 0.0), 3)
