"""Find a message that Open MPI or PRRTE (the launcher of Open MPI 5) writes between two lines of dashes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.frames import introduction
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.leads.complaints import COMPLAINS, is_abort
from toolkit.engine.logs.line_class import classify
from toolkit.engine.logs.survived import WARNS, is_progress
from toolkit.engine.logs.topics import GENERAL_CLASSES, class_of_text

_DASHES = re.compile(r"^(?:-{74}|-{76})$")
"""A pattern for the lines of dashes of Open MPI and PRRTE; other programs write lines of other lengths."""

_OF_MPI = re.compile(
    r"(?i)\b(?:open ?mpi|mpi\w*|open ?rte|orte\w*|prte\w*|prrte\w*|pmix?|ompi|mca|ucx|psm2?|libfabric"
    r"|ofi|btl|openib|openfabrics|infiniband|hwloc|slots?|ppr|ranks?|process(?:es)?|procs?|hosts?"
    r"|hostfile|rankfile|nodes?"
    r"|daemons?|bind\w*|mapp\w+|topology|communicat\w+|allocat\w+|sockets?|interfaces?|tcp|launch\w*)\b"
)
"""A pattern for words that name a subject of Open MPI's messages."""
_MOST = 30
"""Maximum number of lines in a message of Open MPI."""

_SENTENCE = 6
"""Maximum number of lines that toolkit joins to show the first sentence of a message."""

_BEFORE = 60
"""Number of lines before the end of the output, or before the report of an exit, in which toolkit looks for a
message.
"""

_FAR = 200
"""Number of lines before a root line (the first line that reports the failure) in which toolkit counts the
lines of dashes. Open MPI prints such a line before and after each message, so the root line is inside a
message if the count is odd.
"""

_LAST = 4
"""Maximum number of other lines between a message and the end of the output. A program that survives the
reported fault writes more lines.
"""

_CONTRADICTS = re.compile(
    r"(?i)\b(?:no|none|conflict\w*|malformed|improper\w*|mismatched|collision|bigger|beyond|negative"
    r"|(?:less|more) than|both|only specify)\b"
)
"""A pattern for words with which Open MPI rejects options and settings, in addition to the words of
``COMPLAINS``.
"""

_NOTE = re.compile(r"\b(?:ORTE|OPAL|PRTE|PMIX)_?(?:_ERROR_LOG| ERROR): ")
"""A pattern for a line that Open MPI writes for its developers: the name of an error, a file and a line."""

_CONTINUES = re.compile(r"(?i)\b(?:skipped|ignored|defaults? (?:value|to)|instead|reverting|disabled)\b")
"""A pattern for words with which Open MPI says how it continues."""


@dataclass(frozen=True, slots=True)
class _Block:
    first: tuple[int, Line]
    words: str
    later_lines: int
    """Number of lines after the message that are not empty."""


def last_message(output: Output, ending: Clue | None) -> Clue | None:
    """Return the first sentence of the last message between two lines of dashes.

    If ``ending`` (the line in which a launcher reports an exit) is given, the message is before this line.
    Otherwise, the message is at the end of the output, and at most a few lines follow it. The result is
    ``None`` if there is no such message, if the message reports no failure or only warns, or if the program
    wrote progress lines after the message.
    """
    end = ending.position if ending else output.pages[-1].end if output.pages else 0
    block = _last_block(output.before(end, _BEFORE))
    if block is None or (ending is None and block.later_lines > _LAST):
        return None
    later = output.places_after(block.first[0], _BEFORE)
    if not _is_failure(block) or any(is_progress(strip_label(line.text).strip()) for _, line in later):
        return None
    return Clue(*block.first, _class_of(block.words), 3, "cause")


def _is_failure(block: _Block) -> bool:
    """Return whether a message reports a failure after which Open MPI does not continue."""
    if WARNS.search(block.words) or _CONTINUES.search(block.words) or not _OF_MPI.search(block.words):
        return False
    return any(pattern.search(block.words) for pattern in (COMPLAINS, _CONTRADICTS))


def message_around(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line is part of a message between two lines of dashes, return the first sentence of this
    message; otherwise ``None``.

    If the fault class of the root line is specific, the result keeps this class. Otherwise, the words of the
    message decide the class.
    """
    del causes  # the first line of a message need not report a cause
    if clue.class_ == "python-exception" or introduction(output, clue) is not None:
        return None
    after = [place for place in output.places_after(clue.position, _MOST) if place[1].task == clue.line.task]
    before = [place for place in output.before(clue.position, _FAR) if place[1].task == clue.line.task]
    if len(_rules(before)) % 2 == 0:
        return None  # a program wrote the line between two messages
    block = _last_block([*before, (clue.position, output.line(clue.position)), *_to_dashes(after)])
    if (
        block is None
        or not block.first[0] <= clue.position
        or block.later_lines
        or not _OF_MPI.search(block.words)
    ):
        return None
    position, line = block.first
    class_ = clue.class_ if clue.class_ not in GENERAL_CLASSES else _class_of(block.words)
    return Clue(position, line, class_, clue.strength, clue.role, clue.retry)


def message_before(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If messages directly before the root line report the failure, return the first sentence of the earliest
    of these messages; otherwise ``None``.

    The root line must be a note for Open MPI's developers, or the first line of another message: such notes
    and messages repeat the failure in general words. For a report of ``MPI_Abort``, the result is ``None``,
    because this report does not follow from an earlier message.
    """
    del causes  # a message need not be one of the causes
    if is_abort(clue):
        return None
    before = [place for place in output.before(clue.position, _FAR) if place[1].task == clue.line.task]
    noted = _NOTE.search(clue.line.text) is not None
    rules = _rules(before)
    opens = len(rules) % 2 == 1 and rules[-1] == len(before) - 1
    if not noted and not opens:
        return None
    found, left = None, before if noted else before[:-1]
    while (block := _last_block(left)) and _is_failure(block):
        *_, start, stop = _rules(left)
        if any(not _NOTE.search(line.text) for _, line in left[stop + 1 :] if line.text.strip()):
            break
        found, left = block, left[:start]
    if found is None:
        return None
    return Clue(*found.first, _class_of(found.words), clue.strength, "cause")


def _to_dashes(lines: list[tuple[int, Line]]) -> list[tuple[int, Line]]:
    """Return the lines up to the first line of dashes, including this line; empty if no line has dashes."""
    return lines[: next(iter(_rules(lines)), -1) + 1]


def _last_block(lines: list[tuple[int, Line]]) -> _Block | None:
    """Return the message between the last two lines of dashes; ``None`` if there are fewer than two such
    lines, or if the message is empty or too long.
    """
    rules = _rules(lines)
    if len(rules) < 2:
        return None
    start, stop = rules[-2:]
    inside = [place for place in lines[start + 1 : stop] if place[1].text.strip()]
    if not inside or len(inside) > _MOST:
        return None
    words = " ".join(strip_label(line.text).strip() for _, line in inside)
    after = sum(bool(line.text.strip()) for _, line in lines[stop + 1 :])
    return _Block(_sentence(inside), words, after)


def _sentence(lines: list[tuple[int, Line]]) -> tuple[int, Line]:
    """Return the first sentence of a message as one line, and its position. If a line ends with a colon, the
    next line has a value and is the end of the sentence.
    """
    position, first = lines[0]
    text = first.text.rstrip()
    for _, line in lines[1:_SENTENCE]:
        if text.endswith((".", "!", "?")):
            break
        introduces = text.endswith(":")
        text = f"{text} {strip_label(line.text).strip()}"
        if introduces:
            break
    return position, Line(first.number, first.task, text, first.tag)


def _rules(lines: list[tuple[int, Line]]) -> list[int]:
    """Return the indices of the lines of dashes."""
    return [n for n, (_, line) in enumerate(lines) if _DASHES.match(strip_label(line.text).strip())]


def _class_of(words: str) -> str:
    """Return the fault class of the first sentence that reports a cause with a specific class. Without such a
    sentence, the subject of the message's first sentence decides; ``mpi`` if this sentence names no subject.
    """
    sentences = words.split(". ")
    rows = (classify(sentence) for sentence in sentences)
    named = (row.class_ for row in rows if row and row.role == "cause" and row.class_ not in GENERAL_CLASSES)
    return next(named, None) or class_of_text(sentences[0]) or "mpi"
