"""Find the reason in a help message about a failed start of Open MPI, PRRTE (its launcher) or PMIx."""

import re
from collections.abc import Sequence
from dataclasses import replace

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.topics import GENERAL_CLASSES

_FAILED = re.compile(r"^It looks like \w{2,40} failed for some reason")
_RETURNED = re.compile(r"^--> Returned ")
"""Patterns for the first line of the message about a failed start, and for its last line. The line before the
last line names the failed part of the library.
"""

_ABOUT_PMIX = re.compile(
    r"^It looks like pmix\w* failed\b|^PMIX stopped checking\b"
    r"|^Framework: +(?:bfrops|gds|pcompress|plog|pmdl|pnet|preg|psec|psensor|psquash|ptl)$"
)
"""A pattern for a line of a message from PMIx. Only PMIx has the groups of plugins that the pattern accepts
after ``Framework:``.
"""

_RULE = re.compile(r"^-{20,}$")
_MOST = 20
"""Maximum number of lines of a message."""


def failed_part(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """If the root line says that a library could not start, return the line that names the failed part of the
    library, joined with the error code on the next line; otherwise ``None``.
    """
    del causes  # the line that names the failed part need not report a cause
    if not _FAILED.match(strip_label(clue.line.text).strip()):
        return None
    part: tuple[int, Line] | None = None
    for position, line in output.places_after(clue.position, _MOST):
        text = strip_label(line.text).strip()
        if part and _RETURNED.match(text):
            class_ = "pmi" if _is_about_pmix(output, clue) else clue.class_
            joined = replace(part[1], text=f"{part[1].text.strip()} {text}")
            return replace(clue, position=part[0], line=joined, class_=class_)
        if _RULE.match(text):
            return None
        part = (position, line) if text else part
    return None


def message_of_pmix(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the root line with the fault class ``pmi`` if it starts a message from PMIx, and its own class
    is ``mpi`` or a general class; otherwise ``None``.
    """
    del causes
    if clue.class_ not in {"mpi", *GENERAL_CLASSES} or not _is_about_pmix(output, clue):
        return None
    return replace(clue, class_="pmi")


def _is_about_pmix(output: Output, clue: Clue) -> bool:
    """Return whether the root line or a later line of its message is from PMIx."""
    for line in (clue.line, *output.following(clue.position, _MOST)):
        text = strip_label(line.text).strip()
        if _RULE.match(text) or (line is not clue.line and _FAILED.match(text)):
            return False
        if _ABOUT_PMIX.match(text):
            return True
    return False
