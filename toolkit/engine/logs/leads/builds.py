"""Find the error of a build tool, such as a compiler, in the output that pip quotes, or before the report of
a failed step of an image build.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.line_class import classify
from toolkit.engine.logs.topics import GENERAL_CLASSES

_HEADING = re.compile(
    r"^\s*(?:ERROR: Command errored out with exit status|error: subprocess-exited-with-error)"
)
"""A pattern for the line that pip prints before it quotes the output of a build."""

_SUMMARY = re.compile(
    r"ERROR: (?:Failed building wheel|Could not build wheels|Failed to build)|metadata-generation-failed"
)
"""A pattern for a line in which pip reports a failed build after the quoted output."""

_END = re.compile(r"^\s*-{20,}$|\[end of output\]$")
"""A pattern for the line that ends the quoted output of a build."""

_MOST_LINES = 1000
"""Maximum number of quoted lines that toolkit reads."""

_AFTER = 20
"""Maximum number of lines between the error of a build step and the report that the step failed."""


def error_of_build(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the error of a build tool, if pip quotes the tool's output and reports the failed build.
    ``clue`` is the root line (the first line that reports the failure).

    If the root line is pip's report, return the first error in the quoted output. If the quoted output
    contains no error, return pip's summary. If the root line is in the quoted output and has a general fault
    class, such as ``unknown-error``, return the root line. In all other cases, return ``None``.

    A quoted error with a general fault class gets the class ``build``.
    """
    reports = _HEADING.match(clue.line.text) or _SUMMARY.search(clue.line.text)
    if not reports and clue.class_ not in GENERAL_CLASSES:
        return None
    heads = [one for one in causes if one.position <= clue.position and _HEADING.match(one.line.text)]
    if not heads:
        return None
    quoted = _quoted(output, heads[-1].position)
    if not reports:
        return replace(clue, class_="build") if clue.position in quoted else None
    inside = (c for c in causes if c.position in quoted and c.strength >= 3)
    first = next((c for c in inside if not _SUMMARY.search(c.line.text)), None)
    if first is None:
        return next(
            (c for c in causes if c.position > max(quoted, default=0) and _SUMMARY.search(c.line.text)), None
        )
    return replace(first, class_="build") if first.class_ in GENERAL_CLASSES else first


def error_of_step(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the root line with the fault class ``build`` if its class is unknown and one of the next lines
    reports that a step of a build failed; otherwise ``None``.
    """
    del causes  # ``causes`` omits the report of the failed step
    if clue.class_ != "unknown-error":
        return None
    rows = (classify(strip_label(line.text)) for line in output.following(clue.position, _AFTER))
    failed = any(row.class_ == "build" and row.role == "ending" for row in rows if row)
    return replace(clue, class_="build") if failed else None


def _quoted(output: Output, head: int) -> set[int]:
    """Return the positions of the lines that pip quotes after the heading at position ``head``."""
    found = set[int]()
    for position, line in output.places_after(head, _MOST_LINES):
        if _END.search(strip_label(line.text)):
            return found
        found.add(position)
    return found
