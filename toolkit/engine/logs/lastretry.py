"""Find the root line of an output that ends while a program still retries a failed operation."""

import re

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.line_class import classify_warning
from toolkit.engine.logs.topics import GENERAL_CLASSES

_RETRIES = re.compile(
    r"(?i)\b(?:retrying|will (?:be )?retr(?:y|ied)|trying again|next attempt|retry in \d)\b"
)
_BEFORE = 60
"""toolkit looks for the first failure of the same kind in this number of lines before the last retry."""

_NUMBER = re.compile(r"0x[\da-fA-F]+|\d+")


def retried_at_end(output: Output, ended: Clue | None) -> Clue | None:
    """Return the first failure of an operation that a program still retries in its last line. This is the
    last line of the output, or the last line before the launcher's report ``ended`` of an exit.

    The result is ``None`` if the last line announces no retry, or if the failure has no specific fault class.
    """
    end = ended.position if ended else output.pages[-1].end if output.pages else 0
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
