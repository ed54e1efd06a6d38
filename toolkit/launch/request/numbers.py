"""Check the numbers in a value, such as a time, after the value has matched the pattern of its field."""

import re

from toolkit import nodelist
from toolkit.scheduler.times import minutes

_LARGEST_INDEX = 4_000_000
"""The largest task index of an array, because MaxArraySize is at most 4000001 (slurm.conf(5))."""

_LONGEST_DAYS = 24_855
"""The longest time limit in days, because Slurm counts seconds in 31 bits (time_str2secs in parse_time.c)."""

_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
_TOO_LONG = re.compile(r"\d{13}")
_REVERSED = "the range {} is reversed; write the smaller number first"


def wrong(form: str, value: str) -> str:
    """Return the fault of the numbers in a value, or an empty string.

    ``form`` is the name of the pattern that the value matches.
    """
    if form == "nodes":
        return nodelist.wrong(value) if value else ""
    if form not in _WITH_NUMBERS:
        return ""
    if _TOO_LONG.search(value):
        return "a number in this value has more than 12 digits; write at most 12 digits"
    if form == "time":
        return _time(value)
    return _array(value) if form == "array" else ""


_WITH_NUMBERS = frozenset({"time", "array", "memory", "dependency", "begin", "gpu_bind"})


def _time(value: str) -> str:
    limit = minutes(value)
    most = f"expected at most {_LONGEST_DAYS} days, or UNLIMITED"
    return most if limit is not None and limit > _LONGEST_DAYS * 24 * 60 else ""


def _array(value: str) -> str:
    tasks, _, at_once = value.partition("%")
    for part in tasks.split(","):
        if (match := _RANGE.fullmatch(part)) is None:
            continue
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first:
            return _REVERSED.format(part)
        if last > _LARGEST_INDEX:
            return f"task index {last} is too large; Slurm accepts at most {_LARGEST_INDEX}"
        if step == 0:
            return f"the step of {part} must be at least 1"
    return (
        f"expected at most {_LARGEST_INDEX} tasks at once"
        if at_once and int(at_once) > _LARGEST_INDEX
        else ""
    )
