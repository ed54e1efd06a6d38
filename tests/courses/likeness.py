"""Compare a command's output with a page, and ignore the parts that differ between runs."""

import difflib
import re
from collections.abc import Sequence

LEFT_OUT = "..."
"""A line on a page that replaces any number of omitted lines."""

_MASKS = (
    # These patterns match keys of jobs, digests, and names that contain them.
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"), "#"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{6,}\b"), "#"),
    (re.compile(r"-?\b\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?"), "#"),
    # The previous pattern needs a word boundary; this pattern finds digits inside words such as node12.
    (re.compile(r"\d+"), "#"),
    # All units of time become s, and all units of size become equal.
    (re.compile(r"# (?:ns|µs|ms|s|min|h)\b"), "# s"),
    (re.compile(r"# ?[kKMGT]?i?B\b"), "# B"),
    # Ignore the length of horizontal rules, which depends on the text, and of bars, which depends on values.
    (re.compile(r"([-─━=])\1{2,}"), r"\1\1\1"),
    (re.compile(r"[█▉▊▋▌▍▎▏▇▆▅▄▃▂▁░▒▓·]+"), ""),
    # A longer number moves the text after it, so any number of blanks counts as one blank.
    (re.compile(r"\s+"), " "),
)
_PROGRESS = re.compile(
    r"^\d\d:\d\d:\d\d \S|^srun: (?:Job \d+ step creation|Step created)"
    r"|^(?:\[rank \d+\] |\d+: )?(?:WARNING: All log messages before absl::InitializeLog\(\)"
    r"|I0000 .{1,60} oneDNN custom operations are on\.)|^INFO:    Cleanup error: while stopping driver"
)
"""Pattern of lines that the pages omit: lines that begin with the time of day, lines of srun about a delayed
step, the lines that TensorFlow 2.21 writes at its start, and a message of Apptainer after the program's end.
"""
_OTHER_RANK = re.compile(r"^\[rank (\d+)\] ")


def masked(line: str) -> str:
    """Return a line in which marks replace the numbers, times, digests and widths that differ between
    runs.
    """
    for pattern, mark in _MASKS:
        line = pattern.sub(mark, line)
    return line.strip()


def lasting(lines: Sequence[str]) -> list[str]:
    """Return the lines without progress lines, and without empty lines at the start and the end.

    Which progress lines appear depends on the machine's speed. The order of lines from different ranks
    depends on the speed, too, so lines from ranks other than the first are moved to the end, rank by rank.
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
    """Return the printed output without the lines that the page omits; ``None`` if output and page differ."""
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
    """Return a diff between the shown and the printed output; an empty list if they match."""
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
    """Return the line number where a part of the page is in the output; ``None`` if it is not there.

    The part must be at the line ``at``. With ``anywhere``, the part may also be later; with ``to_end``, the
    part must be the end of the output.
    """
    wanted = [masked(line) for line in part]
    end = len(printed) - len(part)
    places = range(at, end + 1) if anywhere else range(at, at + 1)
    if to_end:
        places = range(end, end + 1) if end in places else range(0)
    return next((p for p in places if [masked(x) for x in printed[p : p + len(part)]] == wanted), None)
