"""A rule: a small pure function with an id, the facts that it needs, and what it says when it fires."""

from collections.abc import Callable
from dataclasses import dataclass, field

from toolkit.engine.case import Case
from toolkit.model.finding import Severity
from toolkit.model.prediction import MODES, Mode, Outcome


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule has fired: the evidence, what it makes of the launch, and why, in one clause.

    ``outcome`` is ``None`` where the launch still works; ``title``, ``fix`` and ``source`` replace
    the rule's own where a row of knowledge says it better.
    """

    evidence: tuple[str, ...]
    outcome: Outcome | None = None
    because: str = ""
    title: str = ""
    fix: str = ""
    source: str = ""


Check = Callable[[Case], Hit | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """``needs`` are dotted facts; where one is unknown the rule is undecided, and never asked."""

    id: str
    title: str
    severity: Severity
    fix: str
    source: str
    check: Check = field(repr=False)
    needs: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = MODES


def rule(
    id: str,  # noqa: A002 - the word that findings, logs and documentation use
    title: str,
    *,
    severity: Severity,
    fix: str,
    source: str,
    needs: tuple[str, ...] = (),
    modes: tuple[Mode, ...] = MODES,
) -> Callable[[Check], Rule]:
    """Make a rule of a function; registering it is a line in :mod:`toolkit.engine.registry`."""

    def made(check: Check) -> Rule:
        return Rule(id, title, severity, fix, source, check, needs, modes)

    return made
