"""Find the exception of a child process, if its parent process only reports that it waited in vain."""

import re
from collections.abc import Sequence
from dataclasses import replace

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.frames import introduction
from toolkit.engine.logs.joblines import Output

_WAITED = re.compile(
    r"(?:\w{1,60}\.){0,8}(?:Empty|Full|EOFError|BrokenPipeError|BrokenProcessPool|BrokenBarrierError|TimeoutError"
    r"|ConnectionResetError)\b"
)
"""A pattern for exceptions of a process that waits in vain for a queue, a pipe, a pool or an event."""

_OF_CHILD = re.compile(r"^(?:Process \S.{0,60}|Exception in initializer):$")
"""A pattern for the line that multiprocessing and concurrent.futures print before the traceback of a child
process.
"""


def exception_of_child(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If ``clue`` is an exception of a parent process that waited in vain for a child process, return the
    last earlier exception of a child process in ``causes``. The result has the rank of the parent process.

    Return ``None`` if ``clue`` is another line, or if no exception of a child process precedes it.
    """
    if not _WAITED.match(strip_label(clue.line.text)):
        return None
    before = (one for one in reversed(causes) if one.position < clue.position and one.strength >= 4)
    own = (one for one in before if one.line.task in {"", clue.line.task})
    child = next((one for one in own if _OF_CHILD.match(introduction(output, one) or "")), None)
    return replace(child, line=replace(child.line, task=clue.line.task)) if child else None
