"""Find the line with the reason of a failure, if the root line only summarises lines near it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.line_class import classify
from toolkit.engine.logs.topics import GENERAL_CLASSES


@dataclass(frozen=True, slots=True)
class Summary:
    """A pattern for a line that summarises other lines, and a pattern for the line with the reason.

    toolkit reads at most ``before`` lines before the summary, then at most ``after`` lines after it.
    """

    summary: re.Pattern[str]
    reason: re.Pattern[str]
    before: int
    after: int


SUMMARIES = (
    Summary(  # PyTorch's store tries several addresses
        re.compile(r"^(?!.{0,400}failed to bind to).{0,200}failed to listen on any local network address"),
        re.compile(r"server socket has failed to bind to \S{1,80} \(errno: "),
        before=6,
        after=0,
    ),
    Summary(  # pyxis prints enroot's log after its own messages
        re.compile(r"\bpyxis: (?:failed to|could(?:n't| not)) "),
        re.compile(r"\bpyxis: +\[ERROR\] "),
        before=0,
        after=20,
    ),
    Summary(  # the shell and Slurm report the same killed process
        re.compile(r": line \d+: +\d+ Killed\b"),
        re.compile(r"\bDetected \d+ oom[-_ ]kill"),
        before=5,
        after=5,
    ),
    Summary(  # a GPU kernel prints its failed assertion before or after the exception
        re.compile(r"\bCUDA error: device-side assert triggered"),
        re.compile(r"block: \[[\d,]{5,30}\], thread: \[[\d,]{5,30}\] Assertion"),
        before=100,
        after=40,
    ),
    Summary(  # a program announces its end below its error
        re.compile(r"(?i)^\W*(?:an? |fatal )?errors? (?:detected|occurred|encountered)\b.{0,20}abort"),
        re.compile(r"(?i)^(?![-=*#]{5}).{0,200}(?:\bnot\b|n't\b|\b(?:unknown|missing|invalid|must|too)\b)"),
        before=2,
        after=0,
    ),
    Summary(  # Apptainer breaks its message into lines
        re.compile(r"container creation failed:(?:.{0,300}:)?\s*$"),
        re.compile(r"(?i)\b(?:doesn't exist|no such|denied|not permitted|not a directory|can't)\b"),
        before=0,
        after=5,
    ),
    Summary(  # a process that reached its limit on open files cannot open another file
        re.compile(r"(?i)\b(?:unable to|cannot|can't|could(?:n't| not)|failed to) (?:open|create)\b"),
        re.compile(r"Too many open files|received \d+ items of ancdata|\[Errno 2[34]\]|\bE[MN]FILE\b"),
        before=60,
        after=40,
    ),
    Summary(  # PyTorch reports the error of NCCL, which prints the reason
        re.compile(r"^(?!.{0,400}[NR]CCL WARN).{0,120}NCCL error in: .{0,300}unhandled \w+ error"),
        re.compile(r"[NR]CCL WARN (?!.{0,100}(?:[Cc]onnection|peer closed))"),
        before=0,
        after=40,
    ),
)

_DPKG = re.compile(r"\bSub-process \S{1,80}dpkg returned an error code")
_PACKAGE = re.compile(r"^dpkg: error processing (?:package|archive) ")
_SCRIPT = 8
"""toolkit looks for an error of a package's script in this number of lines before dpkg's report."""

_OUTPUT = 60
"""Maximum number of lines between dpkg's report of a package and the summary of apt."""


def reason_near_summary(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the line with the reason of a failure, if the root line ``clue`` only summarises it; otherwise
    ``None``.
    """
    del causes
    for one in SUMMARIES:
        if one.summary.search(clue.line.text):
            near = [*output.before(clue.position, one.before), *_after(output, clue, one.after)]
            found = next((place for place in near if one.reason.search(place[1].text)), None)
            return _clue_at(clue, *found) if found else None
    return None


def error_of_package(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the first error of the package script that failed, if the root line ``clue`` is the summary of
    apt; otherwise ``None``.
    """
    del causes
    if not _DPKG.search(clue.line.text):
        return None
    before = output.before(clue.position, _OUTPUT)
    at = next((n for n, (_, line) in enumerate(before) if _PACKAGE.match(strip_label(line.text))), None)
    if at is None:
        return None
    script = before[max(at - _SCRIPT, 0) : at]
    rows = ((place, classify(strip_label(place[1].text))) for place in script)
    first = next((place for place, row in rows if row is not None and row.role == "cause"), before[at])
    return replace(clue, position=first[0], line=first[1])


def _after(output: Output, clue: Clue, limit: int) -> Iterable[tuple[int, Line]]:
    return output.places_after(clue.position, limit) if limit else ()


def _clue_at(clue: Clue, position: int, line: Line) -> Clue:
    """Return ``clue`` with the given line. If this line has a specific fault class, the result has this
    class; otherwise the result has the class of ``clue``.
    """
    row = classify(strip_label(line.text))
    named = row.class_ if row and row.class_ not in {"", *GENERAL_CLASSES} else clue.class_
    return replace(clue, position=position, line=line, class_=named)
