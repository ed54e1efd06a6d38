"""Find known messages in job output, with their meaning, causes and fixes."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from toolkit import knowledge
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.logsearch import PatternLines, compile_line_pattern, search
from toolkit.engine.logs.world_of_one import CLAIMS, find_world_of_one
from toolkit.knowledge.signatures import LogSignature, stems
from toolkit.model.finding import Finding

_SHOWN = 3
_NEAR = 40
"""Number of lines after a matching line in which toolkit looks for the other lines of the message (the
signature's patterns ``then``).
"""

_MOST_LOOKED_AT = 100
"""Maximum number of matching lines that toolkit examines for each log signature."""

_SECONDS = 6.0
"""Time limit of a search in seconds. With this limit, toolkit reads, searches and explains an output of 200
MB in less than ten seconds.
"""

ENDING = r"Terminating StepId|Job step aborted: Waiting up to|\*\*\* STEP \S+ ON \S+ CANCELLED AT "
"""A pattern for a message that Slurm prints when it stops the remaining ranks."""

_DEBUG = re.compile(r"^(?: *\d+: )?(?:\S{1,40}: )?debug\d?: |\blevel=(?:trace|debug|info)\b")
"""A pattern for a log line of the level trace, debug or info, which reports no fault."""

_SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class SignatureMatch:
    """A log signature (a pattern for a known message), and the lines that match this pattern. ``position`` is
    the position of the first matching line.
    """

    signature: LogSignature
    lines: tuple[Line, ...]
    position: int

    def finding(self) -> Finding:
        """Return the finding of the log signature, with the matching lines as evidence."""
        return _finding(self.signature, tuple(line.citation for line in self.lines))


@dataclass(frozen=True, slots=True)
class Recognised:
    """The known messages in an output.

    ``matches`` are in the order of the signature files. ``singletons`` is the finding about worlds of size 1.
    ``unread`` is the first and last line number of the part of the output that toolkit did not read.
    ``suspects`` are the positions of lines that contain a stem (a part of a word about faults, such as
    ``fail``).
    """

    matches: tuple[SignatureMatch, ...]
    singletons: Finding | None = None
    unread: tuple[int, int] | None = None
    suspects: Sequence[int] = ()

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings, the most severe first. Of equally severe findings, causes come before
        consequences. A general log signature matches messages that do not name the reason of a failure. The
        result includes findings of general signatures only if no other finding is an error.
        """
        causes = [match.finding() for match in self.matches if not match.signature.general]
        if self.singletons:
            # Worlds of size 1 are a consequence, so this finding comes after a library's message about the
            # cause.
            causes.append(self.singletons)
        if not any(finding.severity == "error" for finding in causes):
            causes += [match.finding() for match in self.matches if match.signature.general]
        return tuple(sorted(dict.fromkeys(causes), key=lambda f: _SEVERITIES.index(f.severity)))


def explain(text: str | bytes, tail: str | bytes = b"", missing_lines: int = 0) -> tuple[Finding, ...]:
    """Return the findings about known messages in an output, the most severe first.

    ``text`` is the output. If toolkit omits the middle of a long output, ``text`` is the part before the
    omitted middle, ``tail`` is the part after the middle, and ``missing_lines`` is the number of omitted line
    breaks.
    """
    return recognise(Output(text, tail, missing_lines)).findings()


def recognise(output: Output) -> Recognised:
    """Return the known messages in an output. The result also has the range of lines that toolkit did not
    read, for example because of the time limit.
    """
    found = search(output, _patterns(), _SECONDS, stems())
    matches = (_match(signature, output, found) for signature in knowledge.signatures())
    return Recognised(
        tuple(match for match in matches if match),
        find_world_of_one(output, found),
        found.unread,
        found.suspects,
    )


def _match(signature: LogSignature, output: Output, matches: PatternLines) -> SignatureMatch | None:
    hits = matches.positions[signature.pattern]
    if not hits or not _fits(signature, matches):
        return None
    shown: dict[str, Line] = {}
    first = -1
    overcome, ending = _overcome(signature, matches), _ending(signature, matches)
    likely = (p for p in hits if overcome <= p < ending)
    for position in islice(likely, _MOST_LOOKED_AT):
        own, after = output.line(position), _after(signature, output, position)
        if after is None or _DEBUG.search(own.text):
            continue
        first = position if first < 0 else first
        shown |= {line.citation: line for line in (own, *after)}
        if len(shown) >= _SHOWN:
            break
    lines = tuple(shown.values())[: _SHOWN + len(signature.then)]
    return SignatureMatch(signature, lines, first) if lines else None


def _fits(signature: LogSignature, matches: PatternLines) -> bool:
    """Return whether a log signature fits the output: the output contains the line that the signature
    requires (``seen``), and contains no line that excludes the signature (``unless``).
    """
    has = (not signature.seen) or bool(matches.positions[signature.seen])
    return has and not (signature.unless and matches.positions[signature.unless])


def _overcome(signature: LogSignature, matches: PatternLines) -> int:
    """Return the position of the last line that shows that the ranks continued after the message (the
    signature's pattern ``overcome``); 0 without such a line.
    """
    lines = matches.positions[signature.overcome] if signature.overcome else ()
    return max(lines, default=0)


def _ending(signature: LogSignature, matches: PatternLines) -> float:
    """Return the position of the first line in which Slurm says that it stops the ranks.

    A signature that is marked ``alive`` matches only before this line, because similar messages after this
    line are consequences of the stop. For all other signatures, return infinity.
    """
    lines = matches.positions[ENDING] if signature.alive else ()
    return min(lines, default=math.inf)


def _after(signature: LogSignature, output: Output, position: int) -> tuple[Line, ...] | None:
    """Return the lines that must follow a matching line (``then``), or ``None`` if one of these lines is
    missing.
    """
    near = list(output.following(position, _NEAR)) if signature.then else []
    found = [
        next((line for line in near if compile_line_pattern(then).search(line.text)), None)
        for then in signature.then
    ]
    return tuple(line for line in found if line) if None not in found else None


def _finding(signature: LogSignature, evidence: tuple[str, ...]) -> Finding:
    return Finding(
        id=signature.finding or signature.id,
        severity=signature.severity,
        title=signature.title,
        evidence=evidence,
        fix="\n".join(signature.fix),
        source=signature.source,
    )


@cache
def _patterns() -> tuple[str, ...]:
    """Return all patterns for which toolkit searches the output, without duplicates."""
    signatures = knowledge.signatures()
    optional = (more for s in signatures for more in (s.overcome, s.seen, s.unless) if more)
    return tuple(dict.fromkeys((*(s.pattern for s in signatures), *optional, ENDING, *CLAIMS)))
