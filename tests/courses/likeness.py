"""Compare a command's output with a page, ignoring what differs from run to run."""

import difflib
import re
from collections.abc import Sequence

LEFT_OUT = "..."
"""A line of a page that stands for any number of omitted lines."""

_MASKS = (
    # Keys of jobs, digests, names made from them.
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"), "#"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{6,}\b"), "#"),
    (re.compile(r"-?\b\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?"), "#"),
    # The word before the unit contains no digit, so node12 and x86_64 are left to the next rule.
    (re.compile(r"\d+"), "#"),
    # Times and sizes compare equal in any unit.
    (re.compile(r"# (?:ns|µs|ms|s|min|h)\b"), "# s"),
    (re.compile(r"# ?[kKMGT]?i?B\b"), "# B"),
    # Horizontal rules are as wide as their text, and bars are as long as their value, which may be 0.
    (re.compile(r"([-─━=])\1{2,}"), r"\1\1\1"),
    (re.compile(r"[█▉▊▋▌▍▎▏▇▆▅▄▃▂▁░▒▓·]+"), ""),
    # A number with one more digit moves the text after it.
    (re.compile(r"\s+"), " "),
)
_PROGRESS = re.compile(r"^\d\d:\d\d:\d\d \S|^srun: (?:Job \d+ step creation|Step created)")
"""Lines with the time of day, and lines of srun about a step that starts only after the previous step."""
_OTHER_RANK = re.compile(r"^\[rank (\d+)\] ")


def masked(line: str) -> str:
    """Return a line without what differs from run to run: numbers, times, digests, widths."""
    for pattern, mark in _MASKS:
        line = pattern.sub(mark, line)
    return line.strip()


def lasting(lines: Sequence[str]) -> list[str]:
    """Return the lines that do not report progress, without empty lines at both ends.

    A progress line starts with the time of day; which of these lines appear depends on speed. The position of
    lines from ranks other than the first depends on speed too: these lines are moved to the end, rank by
    rank.
    """
    kept = [line.rstrip() for line in lines if not _PROGRESS.match(line)]
    kept.sort(key=_rank)
    while kept and not kept[0]:
        kept.pop(0)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _rank(line: str) -> int:
    found = _OTHER_RANK.match(line)
    return int(found[1]) if found else 0


def shortened(shown: Sequence[str], printed: Sequence[str]) -> list[str] | None:
    """Return the printed output without the lines that the page leaves out; ``None`` if the two differ."""
    parts = _parts(shown)
    result: list[str] = []
    at = 0
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        found = _find(part, printed, at, anywhere=index > 0, to_end=last)
        if found is None:
            return None
        result += [LEFT_OUT] if index else []
        result += printed[found : found + len(part)]
        at = found + len(part)
    return result


def difference(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return lines that describe how the printed output differs from the shown output; none if they match."""
    if shortened(shown, printed) is not None:
        return []
    return list(
        difflib.unified_diff(
            [masked(line) if line != LEFT_OUT else line for line in shown],
            [masked(line) for line in printed],
            "shown",
            "printed",
            lineterm="",
            n=1,
        )
    ) or ["the lines left out are elsewhere"]


def _parts(shown: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def _find(
    part: Sequence[str], printed: Sequence[str], at: int, *, anywhere: bool, to_end: bool
) -> int | None:
    """Return the position of a part: exactly at ``at``, or later; at the very end if nothing may follow."""
    wanted = [masked(line) for line in part]
    end = len(printed) - len(part)
    places = range(at, end + 1) if anywhere else range(at, at + 1)
    if to_end:
        places = range(end, end + 1) if end in places else range(0)
    return next((p for p in places if [masked(x) for x in printed[p : p + len(part)]] == wanted), None)
