"""Remove errors that only follow from another failure, such as a missing output of an aborted program."""

import re
from collections.abc import Sequence

from toolkit.engine.logs.clues import Cause, Clue, strip_label

_NO_FILE = re.compile(
    r"^(?:\S{0,120}/)?(?:cp|mv|ln|ls|cat|tail|head|stat|du|tar|gtar|gzip|gunzip|rsync|grep|sed|g?awk|diff|wc"
    r"|md5sum|chmod|chgrp): .{0,600}\bNo such file or directory\b"
)
"""A pattern for the error of a shell command that did not find a file."""

_NCCL = re.compile(r"^(?P<process>[^\s:]{1,80}:\d+):\d+ \[\d+\] .{0,120}\b[NR]CCL WARN ")
_CLOSED = "Connection closed by remote peer"


def without_consequences(causes: list[Cause], endings: Sequence[Clue], lines: Sequence[Clue]) -> list[Cause]:
    """Return ``causes`` without errors that only follow from another failure.

    The function removes the error of a shell command that did not find a file, if the line comes after the
    report of a failed rank. It also removes NCCL's warnings in a process whose peer closed the connection.

    Args:
        causes: the lines that report causes.
        endings: the lines in which launchers report that ranks exited.
        lines: all lines that may report a fault.
    """
    end = next((one.position for one in endings if one.strength >= 4), None)
    if end is not None:
        causes = [p for p in causes if p[0].position < end or not _NO_FILE.match(strip_label(p[0].line.text))]
    lost = {
        process: c.position for c in reversed(lines) if _CLOSED in c.line.text and (process := _process(c))
    }
    return [p for p in causes if p[0].position < lost.get(_process(p[0]), p[0].position + 1)]


def _process(clue: Clue) -> str:
    """Return the host and the process ID that NCCL names in a warning, as ``HOST:PID``; empty for other
    lines.
    """
    found = _NCCL.match(clue.line.text)
    return found["process"] if found else ""
