"""Find the exception that ended a rank long before the other ranks reported that they lost this rank."""

import re
from collections.abc import Sequence
from itertools import islice

from toolkit.engine.logs.clues import Cause, Clue
from toolkit.engine.logs.frames import introduction
from toolkit.engine.logs.handled import LOGGED, NOT_MAIN, UNCAUGHT
from toolkit.engine.logs.joblines import LABEL, Output

_AFTER = 60
"""Maximum number of lines from an exception to the end of its message. The message may continue on later
lines, between lines of other ranks.
"""

_MOST = 100
"""Maximum number of exceptions that toolkit examines."""

_STREAM = re.compile(r"(?<=<std)\w{1,4}>:.*")
"""A pattern for the end of a tag of mpirun; this end is different for standard output and standard error."""

_CLOCK = re.compile(r"\d\d:\d\d")
"""A pattern for a time in a tag. A tag with a time changes from line to line, so it does not identify a rank.
"""


def exception_of_ended_rank(output: Output, causes: Sequence[Cause], clue: Clue | None) -> Cause | None:
    """Return the first exception that ended its rank before the line ``clue``, and its traceback frame;
    ``None`` without such an exception.

    In the line ``clue``, another rank reports that it lost a rank or waited for a rank. If ``clue`` is
    ``None``, only an exception with a tag of PyTorch, such as ``[rank1]:``, counts. PyTorch writes this tag
    before an exception that ends a rank.
    """
    early = (p for p in causes if p[0].line.task and (not clue or p[0].position < clue.position))
    strong = islice((pair for pair in early if pair[0].strength >= 5), _MOST)
    return next((pair for pair in strong if _ended(output, pair[0], tag_only=clue is None)), None)


def _ended(output: Output, clue: Clue, *, tag_only: bool) -> bool:
    """Return whether an exception ended its rank: the exception has PyTorch's tag, or it is from the main
    thread and the rank wrote nothing afterwards. If ``tag_only`` is true, only the tag counts.
    """
    if UNCAUGHT.search(clue.line.tag):
        return introduction(output, clue) is not None
    before = None if tag_only else introduction(output, clue)
    if before is None or NOT_MAIN.search(before) or LOGGED.search(before):
        return False
    label = LABEL.match(clue.line.text)
    start = _STREAM.sub("", clue.line.tag) or (label[0] if label else "")
    if not start or _CLOCK.search(start):
        return False
    last = output.last_with(start)
    return clue.position <= last and output.line(last).number <= clue.line.number + _AFTER
