"""Read the tables with which ``toolkit explain`` finds the cause of a failure in job output: log signatures,
fault classes, patterns for lines of each class, and error codes.
"""

from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.finding import Retry, Severity


class LogSignature(Row, frozen=True, kw_only=True):
    """A pattern for a line of job output, and the cause of a failure that such a line shows. ``sample`` is a
    line that matches the pattern.

    ``fix`` lists steps, the best step first. ``then`` lists patterns for lines that must follow within 40
    lines, if a single line is not specific enough. ``overcome`` is a pattern for a line which shows that the
    ranks continued in spite of the error. ``seen`` is a pattern for a line that the output must have, such as
    the name of a framework. ``unless`` is a pattern for a line that the output must not have. ``finding`` is
    the id of the rule that predicts the fault; empty if no rule predicts it. ``general`` marks lines that
    report a failure but not the reason; toolkit omits general lines if it finds a cause. ``alive`` marks
    lines, such as a bus error, that toolkit ignores after Slurm starts to stop the job step. After that, such
    lines are only consequences of the stop. ``retry``, if given, overrides the retry advice of the line's
    fault class.
    """

    id: str
    pattern: str
    title: str
    fix: tuple[str, ...]
    sample: str
    then: tuple[str, ...] = ()
    overcome: str = ""
    seen: str = ""
    unless: str = ""
    severity: Severity = "error"
    finding: str = ""
    general: bool = False
    alive: bool = False
    retry: Retry | None = None


class SignatureKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``signatures.toml``, in the order of the steps of a launch: causes come before their
    consequences.
    """

    signature: tuple[LogSignature, ...]


@cache
def signatures() -> tuple[LogSignature, ...]:
    """Return the log signatures in ``signatures.toml``, in the order of the steps of a launch."""
    return read("signatures", SignatureKnowledge).signature


Role = Literal["cause", "consequence", "ending", "harmless"]


class FaultRow(Row, frozen=True, kw_only=True):
    """A fault class: an explanation that is true for every fault of the class, and steps that fix such a
    fault, the best step first.

    ``retry`` says what fixes the fault: another attempt, another node, a change of the job by the user, a
    change of the image, or a change by the administrators of the site. ``signatures`` are prefixes of the ids
    of log signatures. A line that matches such a log signature is of this class, unless a row of
    ``faultlines.toml`` gives the line a specific class. If a line has only general words of failure, such as
    "error", a further word that matches ``subjects`` shows that the line is of this class. ``files`` are
    patterns for the paths of library files. An exception that such a file raises belongs to this fault class.
    """

    id: str
    title: str
    means: str
    fix: tuple[str, ...]
    retry: Retry
    signatures: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class FaultLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns for lines of a fault class.

    ``strength`` is from 1 to 5: with 5, the line identifies the fault; with 2, the line has only general
    words of failure; with 1, other lines explain the fault better. ``codes`` are ids of code families in
    ``numbers.toml``. A row with ``codes`` has no patterns; the error code in a line decides the line's class.
    """

    patterns: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    class_: str = msgspec.field(name="class", default="")
    strength: int = 5
    role: Role = "cause"
    retry: Retry | None = None


class FaultKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``classes.toml``."""

    class_: tuple[FaultRow, ...] = msgspec.field(name="class")


class LineKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``faultlines.toml``.

    The first row that matches a line decides the fault class of the line. toolkit checks only lines that
    contain a stem, which is a part of a word in lower case, such as ``fail``.
    """

    stems: tuple[str, ...]
    line: tuple[FaultLine, ...]


@cache
def classes() -> dict[str, FaultRow]:
    """Return all fault classes, by id."""
    return {row.id: row for row in read("classes", FaultKnowledge).class_}


def fault_lines() -> tuple[FaultLine, ...]:
    """Return the rows of ``faultlines.toml`` in order. The first row that matches a line of output decides
    the line's fault class.
    """
    return _lines().line


def stems() -> tuple[str, ...]:
    """Return the stems: lower-case parts of words. toolkit checks only lines that contain a stem."""
    return _lines().stems


@cache
def _lines() -> LineKnowledge:
    return read("faultlines", LineKnowledge)


class FaultCode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error code: a number or name with which a system reports a fault; ``means`` explains the code in a
    sentence.

    ``class_`` is empty if the code alone does not decide the fault class. ``telling`` is true if ``text``
    identifies the code even in a line without the code's number or name.
    """

    number: int | None = None
    names: tuple[str, ...] = ()
    text: str = ""
    means: str = ""
    class_: str = msgspec.field(name="class", default="")
    retry: Retry | None = None
    telling: bool = False
    role: str = "cause"


class CodeFamily(Row, frozen=True, kw_only=True):
    """The error codes of one system or library.

    Each pattern finds a code in a line by a named group: ``number``, ``name``, ``text`` or ``shell`` (an exit
    status, which is 128 plus the number of a signal).
    """

    id: str
    title: str
    patterns: tuple[str, ...]
    code: tuple[FaultCode, ...]


class NumberKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``numbers.toml``."""

    family: tuple[CodeFamily, ...]


@cache
def families() -> dict[str, CodeFamily]:
    """Return all families of error codes, by id."""
    return {family.id: family for family in read("numbers", NumberKnowledge).family}
