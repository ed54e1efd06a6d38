"""Find exceptions that a program printed and handled, so that the program continued."""

import re
from collections.abc import Sequence
from itertools import islice, takewhile

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.line_class import classify, is_harmless
from toolkit.engine.logs.survived import is_progress
from toolkit.engine.logs.traceback import Raised

_AFTER = 200
"""Number of lines after an exception in which toolkit looks for progress lines."""

_MOST = 200
"""Maximum number of exceptions that toolkit compares with each other."""

_ENOUGH = 2
"""This number of progress lines after an exception shows that the process continued."""

_LAUNCHER = re.compile(r"torch/distributed/(?:elastic|run\.py|launcher)|/torchrun$")
"""A pattern for source files of torchrun. torchrun starts several processes; ``srun --label`` gives the lines
of these processes the same label.
"""

NOT_MAIN = re.compile(
    r"(?i)exception in (?:thread|callback|initializer)|never retrieved|atexit|exception ignored"
    r"|^process \S.{0,60}:$"
)
"""A pattern for the line before a traceback of another thread, a callback, a child process or an exit
handler.
"""

LOGGED = re.compile(r"^(?:ERROR|WARNING):[\w.]{1,60}:|\b(?:ERROR|WARNING)\b.{0,10}[\]:|-] ")
"""A pattern for a logger's line, after which the logger prints the traceback of a handled exception."""

UNCAUGHT = re.compile(r"\[(?:rank|default)\d+\]: ?$")
"""A pattern for the tag that PyTorch writes before an exception that ends a rank."""

_DIGITS = re.compile(r"\d+")

Pair = tuple[Raised, Clue]
"""A traceback, and its exception as a :class:`.Clue`."""


def handled_exceptions(
    output: Output, tracebacks: Sequence[Pair], heads: Sequence[int], ends: Sequence[int]
) -> list[Raised]:
    """Return the exceptions that the program handled; empty if every exception would count as handled.

    An exception counts as handled if the same process later raised another exception. Without rank labels,
    progress lines between the two exceptions must show that the process continued. An exception that
    a logger printed counts as handled if the output also has an exception that no logger printed. If another
    exception follows, the program must have written other lines between the two exceptions.

    Args:
        output: the output of the job.
        tracebacks: each traceback with its exception as a :class:`.Clue`.
        heads: the positions of the first lines of all tracebacks.
        ends: the positions of lines in which launchers report that ranks exited.
    """
    first = {output.line(position).number: position for position in heads}
    shared = any(_LAUNCHER.search(file) for one, _ in tracebacks for file in one.files)
    causes = (one for one, clue in tracebacks if clue.role == "cause")
    fatal = list(islice((one for one in causes if not _introduced(output, first, one, NOT_MAIN)), _MOST))
    texts = [_text(one) for one in fatal]
    logged = [_introduced(output, first, one, LOGGED) for one in fatal]
    found = set[str]()
    for one, text, by_logger in zip(fatal, texts, logged, strict=True):
        others = [number for number, own in enumerate(texts) if own != text]
        if not others or UNCAUGHT.search(one.exception.tag):
            continue
        end = next((at for at in ends if at > one.position), None)
        later = [fatal[number] for number in others if fatal[number].position > one.position]
        later = [other for other in later if end is None or other.position < end]
        if by_logger and any(not logged[number] for number in others):
            handled = not later or _continued(output, one, later[0], any_line=True)
        elif one.exception.task:
            handled = not shared and any(other.exception.task == one.exception.task for other in later)
        else:
            handled = bool(later) and _continued(output, one, later[0])
        if handled:
            found.add(_shape(one))
    # An exception with the same text counts as handled too, even if the numbers in the text differ.
    alike = [one for one in fatal if _shape(one) in found]
    return alike if len(alike) < len(fatal) else []


def _shape(traceback: Raised) -> str:
    return _DIGITS.sub("0", _text(traceback))


def _text(traceback: Raised) -> str:
    return strip_label(traceback.exception.text)


def _introduced(
    output: Output, positions: dict[int, int], traceback: Raised, pattern: re.Pattern[str]
) -> bool:
    """Return whether the line before a traceback, from the same process, matches a pattern."""
    number = min(traceback.numbers)
    if number not in positions:
        return False
    head = output.line(positions[number])
    before = [line for _, line in output.before(positions[number], 4) if line.task == head.task]
    return bool(before) and pattern.search(strip_label(before[-1].text)) is not None


def _continued(output: Output, first: Raised, second: Raised, *, any_line: bool = False) -> bool:
    """Return whether the program wrote at least two progress lines between two exceptions.

    With ``any_line``, or if PyTorch marked the second exception as the end of a rank, a single line is enough
    if no row of ``faultlines.toml`` matches the line.
    """
    marked = any_line or UNCAUGHT.search(second.exception.tag) is not None
    after = takewhile(lambda place: place[0] < second.position, output.places_after(first.position, _AFTER))
    skipped = second.numbers | first.numbers
    between = [strip_label(line.text).strip() for _, line in after if line.number not in skipped]
    if marked and any(text and classify(text) is None and not is_harmless(text) for text in between):
        return True
    return sum(map(is_progress, between)) >= _ENOUGH
