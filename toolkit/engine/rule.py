"""A rule: a small pure function with an id, the facts that it needs, and what it says when it fires."""

from collections.abc import Callable
from dataclasses import dataclass, field

from toolkit.engine.case import Case
from toolkit.model.finding import Severity
from toolkit.model.prediction import MODES, Mode, Outcome


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule has fired: the evidence, what it makes of the launch, and why, in one clause.

    ``outcome`` is ``None`` where the launch still works; ``title``, ``fix``, ``source`` and
    ``severity`` replace the rule's own where a row of knowledge or the case says it better.
    """

    evidence: tuple[str, ...]
    outcome: Outcome | None = None
    because: str = ""
    title: str = ""
    fix: str = ""
    source: str = ""
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Lacks:
    """A rule found, as it looked, that this case turns on facts that are not known: their names."""

    names: tuple[str, ...]


Check = Callable[[Case], Hit | Lacks | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """``needs`` are dotted facts; where one is unknown the rule is undecided, and never asked.

    ``advice`` marks a rule that never changes an outcome, so that it may stay undecided.
    """

    id: str
    title: str
    severity: Severity
    fix: str
    source: str
    check: Check = field(repr=False)
    needs: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = MODES
    advice: bool = False


def rule(
    id: str,  # noqa: A002 - the word that findings, logs and documentation use
    title: str,
    *,
    severity: Severity,
    fix: str,
    source: str,
    needs: tuple[str, ...] = (),
    modes: tuple[Mode, ...] = MODES,
    advice: bool = False,
) -> Callable[[Check], Rule]:
    """Make a rule of a function; registering it is a line in :mod:`toolkit.engine.registry`."""

    def made(check: Check) -> Rule:
        return Rule(id, title, severity, fix, source, check, needs, modes, advice)

    return made
