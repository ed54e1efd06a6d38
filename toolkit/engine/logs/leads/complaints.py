"""Find what a program reported before it called ``MPI_Abort``."""

import re
from collections.abc import Sequence

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.endings import rank_number
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.lastwords import ANNOUNCES, PROGRESS
from toolkit.engine.logs.line_class import classify, is_harmless
from toolkit.engine.logs.topics import GENERAL_CLASSES

_BEFORE = 6
"""Maximum number of lines between a program's own error message and the report that the program called
``MPI_Abort``.
"""

_ABORT = re.compile(r"MPI_ABORT was invoked|application called MPI_Abort")
_NOTE_ENDS = "exactly when Open MPI kills them"
"""The last words of Open MPI's report of ``MPI_Abort``; a line of dashes follows."""

_AFTER = 6
"""Maximum number of lines after Open MPI's report of ``MPI_Abort`` in which toolkit looks for the program's
own error message. The program and mpirun write at the same time.
"""

_SAYS_ERROR = re.compile(r"(?i)^(?:fatal )?error\b")
_RULE = re.compile(r"^\s*[-=*#_]{10,}\s*$")
"""A pattern for a separator line, such as the dashes that Open MPI prints before and after its messages."""

COMPLAINS = re.compile(
    r"(?i)\b(?:not|cannot|(?:ca|could|does|is)n.t|unknown|invalid|missing|must|requires?|needs?"
    r"|expect(?:s|ed)|unexpected|unable|unrecogni[sz]ed|undefined|illegal|wrong|bad|fails?|failed|failure"
    r"|errors?|too (?:many|few|large|small|long)|quitting|stopping|exiting|aborting|erroneous|segfault"
    r"|overflow|underflow|diverged|singular|out of (?:range|bounds|memory)|exceed(?:s|ed))\b"
)
"""A pattern for words with which a program reports wrong input, a wrong call or a wrong state."""

_ABOUT_CALL = re.compile(
    r"(?i)\b(?:options?|arguments?|inputs?|parameters?|keywords?|settings?|config\w*|flags?|usage|variables?)\b"
)
"""A pattern for words that name something that the user gives to a program."""


def is_abort(clue: Clue) -> bool:
    """Return whether a line reports that a program called ``MPI_Abort``."""
    return _ABORT.search(clue.line.text) is not None


def complaint_before_abort(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If ``clue`` reports that the program called ``MPI_Abort``, return the program's own error message from
    the few lines before or after this report; ``None`` without such a message.
    """
    del causes  # the program's own error message need not be one of the causes
    if not is_abort(clue):
        return None
    found = None
    own = "MPI_ABORT was invoked" in clue.line.text  # Open MPI writes a line of dashes before this line
    for position, line in reversed(output.before(clue.position, _BEFORE)):
        text = strip_label(line.text).strip()
        if _RULE.match(text):
            if found or not own:
                break  # the line is the end of another message
            own = False
            continue
        if line.task not in {"", clue.line.task, rank_number(clue)}:
            continue
        if text and PROGRESS.search(text):
            break  # the line reports progress, not an error
        if ANNOUNCES.match(text):
            continue
        if COMPLAINS.search(text) and not is_harmless(text):
            found = Clue(position, line, _class_of(text), 3, "cause")
        elif text and found:
            break
    return found or _complaint_after(output, clue)


def _complaint_after(output: Output, clue: Clue) -> Clue | None:
    """Return the program's first error message in the few lines after Open MPI's report of ``MPI_Abort``;
    ``None`` without such a message.
    """
    ended = closed = False
    for position, line in output.places_after(clue.position, _BEFORE + _AFTER):
        text = strip_label(line.text).strip()
        if _RULE.match(text):
            if closed:
                return None
            closed = ended
        elif closed and _SAYS_ERROR.match(text):
            class_ = _class_of(text)
            return Clue(position, line, "unknown-error" if class_ == "mpi" else class_, 3, "cause")
        ended = ended or _NOTE_ENDS in text
    return None


def _class_of(text: str) -> str:
    """Return the fault class of a program's error message. If the text has no specific class, return
    ``user-configuration`` for a message about options or input, and ``mpi`` for all other messages.
    """
    row = classify(text)
    if row is not None and row.class_ not in GENERAL_CLASSES and row.role == "cause":
        return row.class_
    return "user-configuration" if _ABOUT_CALL.search(text) else "mpi"
