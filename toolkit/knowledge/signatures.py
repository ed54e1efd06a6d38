"""What lines of job output mean: signatures, classes of faults with their lines, and error codes."""

from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.finding import Retry, Severity


class LogSignature(Row, frozen=True, kw_only=True):
    """A line of job output that shows a cause; ``sample`` is a real line that the pattern must match.

    ``fix`` are steps, the best first. ``then`` are patterns of lines that must follow soon, if one line is
    not specific enough. ``overcome`` is the pattern of a line which shows that the ranks continued anyway.
    ``seen`` and ``unless`` are patterns of lines that the output must have somewhere, or must not have,
    such as the name of a framework. ``finding`` is the id of the rule that predicts it; empty if no rule
    does. ``general`` marks lines that report a failure without its reason; toolkit leaves them out if it
    finds a cause. ``alive``: the line means nothing once Slurm has begun to stop the step, because ranks then
    lose the file system under them. ``retry`` has priority over the class of the line.
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
    """``signatures.toml``, in the order of a launch: causes come before their consequences."""

    signature: tuple[LogSignature, ...]


@cache
def signatures() -> tuple[LogSignature, ...]:
    """Return the catalogue of job output."""
    return read("signatures", SignatureKnowledge).signature


Role = Literal["cause", "consequence", "ending", "harmless"]


class FaultRow(Row, frozen=True, kw_only=True):
    """A class of faults: a text that is true for every fault of the class, and steps that fix it, the best
    first.

    ``retry`` says who can remove the fault. ``signatures`` are prefixes of ids of signatures of the class,
    for lines that ``faultlines.toml`` does not match. ``subjects`` are patterns of words that name the
    class in a line of general words of failure; ``files`` are patterns of the files of libraries that raise
    its exceptions.
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
    """Patterns of lines of a class; ``strength`` goes from 2 (words of failure) to 5 (names the fault).

    A row with ``codes`` has families of ``numbers.toml`` instead; the code in a line decides its class.
    """

    patterns: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    class_: str = msgspec.field(name="class", default="")
    strength: int = 5
    role: Role = "cause"
    retry: Retry | None = None


class FaultKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``classes.toml``."""

    class_: tuple[FaultRow, ...] = msgspec.field(name="class")


class LineKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``faultlines.toml``; the first row that matches a line decides, and only lines with a stem are read."""

    stems: tuple[str, ...]
    line: tuple[FaultLine, ...]


@cache
def classes() -> dict[str, FaultRow]:
    """Return the classes of faults by id."""
    return {row.id: row for row in read("classes", FaultKnowledge).class_}


def fault_lines() -> tuple[FaultLine, ...]:
    """Return the rows of lines, in the order in which they decide."""
    return _lines().line


def stems() -> tuple[str, ...]:
    """Return parts of words in lower case; every line of a fault contains at least one of these parts."""
    return _lines().stems


@cache
def _lines() -> LineKnowledge:
    return read("faultlines", LineKnowledge)


class FaultCode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number or name with which a system reports a fault; ``means`` is a sentence for the reader.

    ``class_`` is empty if the code alone does not decide the class. ``telling``: the text names the code.
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
    """Codes of one system; each pattern has a group ``number``, ``name``, ``text`` or ``shell`` (128 + N)."""

    id: str
    title: str
    patterns: tuple[str, ...]
    code: tuple[FaultCode, ...]


class NumberKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``numbers.toml``."""

    family: tuple[CodeFamily, ...]


@cache
def families() -> dict[str, CodeFamily]:
    """Return the families of codes by id."""
    return {family.id: family for family in read("numbers", NumberKnowledge).family}
