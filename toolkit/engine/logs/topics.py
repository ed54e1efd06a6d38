"""Name the class of a fault that only general words report, by its subject or the files of a traceback."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.knowledge.signatures import classes

GENERAL_CLASSES = ("unknown-error", "python-exception", "exit-status")
"""Classes of lines that do not say what the fault is about."""

_QUOTED = 15
"""Largest number of lines between an error and the output of another program that it quotes."""

_QUOTES = re.compile(
    r"(?i)(?:^|[\s(])(?:std(?:out|err)|output|details?|reason|caused by|error message|last error)\W{0,2}:\s*$"
    r"|^\[?(?:std(?:out|err)|output|details|reason)\]?(?:\W{0,2}:|\s*$)"
)
"""A line after which an error quotes what another program wrote."""

_LAST_ERROR = re.compile(r"^\W{0,3}Last error:\s*$")
"""A line after which PyTorch quotes NCCL."""

_INNERMOST = 2
"""Number of innermost files of a traceback that show its subject."""


def class_of_text(text: str) -> str | None:
    """Return the class whose subject a line names first; ``None`` if it names none."""
    found = ((match.start(), class_) for class_, pattern in _subjects() if (match := pattern.search(text)))
    return min(found, default=(0, None))[1]


def class_of_files(files: Iterable[str]) -> str | None:
    """Return the class of the library that raised an exception; ``files`` has the innermost file last."""
    last = list(islice(reversed(list(files)), _INNERMOST))
    named = (class_ for file in last for class_, pattern in _libraries() if pattern.search(file))
    return next(named, None)


def quoted_fault(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the fault that an error quotes from another program, or from NCCL, in the lines after it."""
    quotes, introduction = False, _QUOTES if clue.class_ in GENERAL_CLASSES else _LAST_ERROR
    after = {cause.position: cause for cause in causes if cause.position > clue.position}
    for position, line in output.places_after(clue.position, _QUOTED):
        cause = after.get(position)
        if quotes and cause and (cause.class_ not in GENERAL_CLASSES or class_of_text(cause.line.text)):
            return cause
        quotes = quotes or introduction.search(strip_label(line.text)) is not None
    return None


@cache
def _subjects() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row.id, re.compile(pattern)) for row in classes().values() for pattern in row.subjects)


@cache
def _libraries() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row.id, re.compile(pattern)) for row in classes().values() for pattern in row.files)
