"""Find the exception of a child process for which its parent process waited in vain."""

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
"""A pattern for exceptions of a process that waits for a queue, a pipe, a pool or an event."""

_OF_CHILD = re.compile(r"^(?:Process \S.{0,60}|Exception in initializer):$")
"""A pattern for the line that multiprocessing and concurrent.futures print before the traceback of a child
process.
"""


def exception_of_child(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the last exception of a child process before an exception with which the parent process waited
    in vain; ``None`` without such an exception. The result has the rank of the parent process.
    """
    if not _WAITED.match(strip_label(clue.line.text)):
        return None
    before = (one for one in reversed(causes) if one.position < clue.position and one.strength >= 4)
    own = (one for one in before if one.line.task in {"", clue.line.task})
    child = next((one for one in own if _OF_CHILD.match(introduction(output, one) or "")), None)
    return replace(child, line=replace(child.line, task=clue.line.task)) if child else None
