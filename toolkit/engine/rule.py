"""A rule: a small pure function with an id, the facts that it needs, and what it says when it fires."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps

from toolkit.engine.case import Case
from toolkit.model.finding import Severity
from toolkit.model.prediction import MODES, Mode, Outcome

MPI_MODES: tuple[Mode, ...] = tuple(mode for mode in MODES if mode != "gloo")
"""Modes in which ranks find each other through MPI."""

TRY_IT = "try it: toolkit doctor IMAGE --live --mode MODE"
"""What to do about a launch of which nobody knows what becomes of it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule has fired: the evidence, what it makes of the launch, and why, in one clause.

    ``outcome`` is ``None`` where the launch still works. It is ``unknown`` where nobody measured such a case:
    ``because`` then says so, and the rule's own fix is left out, as nobody knows whether there is a fault.
    ``title``, ``fix``, ``source`` and ``severity`` replace the rule's own where a row of knowledge or the
    case says it better, ``instead`` too where it is not ``None``.
    ``anyway`` says that it comes before anything that a rank makes of its surroundings: it ends one that
    believes to be alone as well, or no rank ever starts; ``late`` that the ranks do their work, and fail as
    they end; ``unstarted`` that the launcher ends before it starts any. ``by_chance`` are outcomes that were
    measured in other tries of the same launch.
    """

    evidence: tuple[str, ...]
    outcome: Outcome | None = None
    because: str = ""
    title: str = ""
    fix: str = ""
    source: str = ""
    severity: Severity | None = None
    instead: tuple[Mode, ...] | None = None
    anyway: bool = False
    late: bool = False
    unstarted: bool = False
    by_chance: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class Lacks:
    """A rule found, as it looked, that this case turns on facts that are not known: their names."""

    names: tuple[str, ...]


Check = Callable[[Case], Hit | Lacks | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """``needs`` are dotted facts; where one is unknown the rule is undecided, and never asked.

    ``about`` are facts without which there is nothing to say: where one is absent the rule is silent, as a
    GPU rule on a host without a GPU; else it is undecided where one is unknown. ``then`` are those that are
    looked at only where the others make them matter; where one of them is missing the rule says so itself.
    ``advice`` marks a rule that never changes an outcome, so that it may stay undecided.
    ``instead`` are other ways of launching that mend it: the best of them that works is named before ``fix``,
    which names none, as a rule sees one way only and does not know whether another works.
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
    about: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    instead: tuple[Mode, ...] = ()

    @property
    def facts(self) -> tuple[str, ...]:
        """Every fact that the rule may ask for."""
        return tuple(dict.fromkeys((*self.needs, *self.about, *self.then)))


def rule(
    id: str,  # noqa: A002 - the word that findings, logs and documentation use
    title: str,
    *,
    severity: Severity,
    fix: str,
    source: str,
    needs: tuple[str, ...] = (),
    about: tuple[str, ...] = (),
    then: tuple[str, ...] = (),
    modes: tuple[Mode, ...] = MODES,
    advice: bool = False,
    instead: tuple[Mode, ...] = (),
) -> Callable[[Check], Rule]:
    """Make a rule of a function; registering it is a line in :mod:`toolkit.engine.registry`."""

    def made(check: Check) -> Rule:
        asked = _where_known(about, check) if about else check
        return Rule(id, title, severity, fix, source, asked, needs, modes, advice, about, then, instead)

    return made


def _where_known(names: tuple[str, ...], check: Check) -> Check:
    @wraps(check)
    def asked(case: Case) -> Hit | Lacks | None:
        states = [case.state(name) for name in names]
        if "absent" in states or "moot" in states:
            return None
        if "unknown" in states:
            return Lacks(tuple(n for n, state in zip(names, states, strict=True) if state == "unknown"))
        return check(case)

    return asked
