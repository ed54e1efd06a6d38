"""Find the root line (the first line that reports the failure) of an output that ends while a program still
retries a failed operation.
"""

import re

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.line_class import classify_warning
from toolkit.engine.logs.topics import GENERAL_CLASSES

_RETRIES = re.compile(
    r"(?i)\b(?:retrying|will (?:be )?retr(?:y|ied)|trying again|next attempt|retry in \d)\b"
)
_BEFORE = 60
"""Number of lines before the end of the output, or before the report of an exit, in which toolkit looks for
the first of several retry messages that differ only in numbers.
"""

_NUMBER = re.compile(r"0x[\da-fA-F]+|\d+")


def retried_at_end(output: Output, ending: Clue | None) -> Clue | None:
    """If the last line says that the program retries an operation, return the first line with this message;
    numbers in the message may differ.

    If ``ending`` (the launcher's report of an exit) is given, the last line is the line before this report.
    Otherwise, it is the last line of the output. The result is ``None`` if the last line announces no retry,
    or if the message has no specific fault class.
    """
    end = ending.position if ending else output.pages[-1].end if output.pages else 0
    filled = [(at, line) for at, line in output.before(end, _BEFORE) if line.text.strip()]
    if not filled or not _RETRIES.search(filled[-1][1].text):
        return None
    last = _shape(filled[-1][1])
    for position, line in filled:
        row = classify_warning(strip_label(line.text))
        if _shape(line) == last and row is not None and row.class_ not in GENERAL_CLASSES:
            return Clue(position, line, row.class_, 3, "cause", row.retry)
    return None


def _shape(line: Line) -> str:
    return _NUMBER.sub("0", strip_label(line.text))
