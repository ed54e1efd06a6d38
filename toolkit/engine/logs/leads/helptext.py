"""Find the first sentence of a message. The root line (the first line that reports the failure) is a later
sentence of this message, and only gives usual reasons of the failure.
"""

import re
from collections.abc import Sequence

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.line_class import classify
from toolkit.engine.logs.topics import GENERAL_CLASSES

_EXPLAINS = re.compile(
    r"(?i)^this (?:(?:error|failure|problem|message|condition) )?(?:(?:is|may be|might be|can be|could be) )?"
    r"(?:usually|often|typically|generally|normally|most likely|probably|likely|commonly"
    r"|caused by|due to|may|might|can|could)\b"
)
"""A pattern for a sentence that gives usual reasons of a failure which an earlier sentence reports."""

_RULE = re.compile(r"^[-=*]{10,}$")
_MOST = 15
"""Maximum number of lines of a message before the sentence about usual reasons."""


def first_sentence(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line gives usual reasons of a failure, return the first line of its message; otherwise
    ``None``.

    The message starts after a line of dashes. If no line of dashes is near, return the nearest earlier line
    that names a specific fault.
    """
    del causes  # the first line may report a consequence
    if not _EXPLAINS.match(strip_label(clue.line.text).strip()):
        return None
    first: Clue | None = None
    named: Clue | None = None
    for position, line in reversed(output.before(clue.position, _MOST)):
        text = strip_label(line.text).strip()
        if _RULE.match(text):
            return first
        if text and line.task == clue.line.task:
            row = classify(text)
            specific = row is not None and row.class_ not in GENERAL_CLASSES
            class_ = row.class_ if row and specific else clue.class_
            first = Clue(position, line, class_, clue.strength, clue.role, clue.retry)
            named = named or (first if specific else None)
    return named
