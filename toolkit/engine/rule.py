"""A rule: a small pure function with an id, the facts that it may ask for, and the text of its findings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from toolkit.engine.case import Case
from toolkit.model.finding import Severity
from toolkit.model.prediction import MODES, MPI_MODES, Accelerator, Mode, Outcome, Plan, ProgramName
from toolkit.program import ALL_PROGRAMS, program_of_name

__all__ = ["MPI_MODES", "TRY_IT", "Check", "Hit", "LaunchStage", "Rule", "rule"]

_NO_MPI: frozenset[Mode] = frozenset(mode for p in ALL_PROGRAMS if not p.BY_MPI for mode in p.MODES) - set(
    MPI_MODES
)

TRY_IT = "try it: `toolkit doctor IMAGE --live --mode MODE`"
"""The fix for a launch whose outcome is unknown."""
TRY_SHORT = "try it: `toolkit launch --image IMAGE --mode MODE --force --time 5 -- COMMAND`"
"""The same fix for a mode without MPI, because ``--live`` does not try such modes."""


def trial_of(mode: Mode) -> str:
    """Return the command that tries a launch mode in a small job."""
    return TRY_IT if mode in MPI_MODES else TRY_SHORT


class LaunchStage(IntEnum):
    """The stages of a launch, in order. The first stage that fails decides the outcome.

    If several rules of one stage fail, the first in :mod:`toolkit.engine.registry` decides.
    """

    SUBMIT = 1
    LAUNCHER = 2
    """The launcher fails before it starts a rank."""
    START = 3
    """A rank fails before it looks for its launcher, so a single rank also fails."""
    INIT = 4
    RUN = 5
    END = 6
    """The ranks complete their work, but fail when they exit."""
    UNKNOWN = 7


_STAGES: dict[Outcome, LaunchStage] = {
    "unavailable": LaunchStage.SUBMIT,
    "loader-failure": LaunchStage.START,
    **dict.fromkeys(("init-failure", "singletons", "wrong-size"), LaunchStage.INIT),
    **dict.fromkeys(("hang", "crash", "comm-failure"), LaunchStage.RUN),
    **dict.fromkeys(("unknown", "ok"), LaunchStage.UNKNOWN),
}


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule fires: the evidence, the outcome, and the reason in one clause.

    ``outcome`` is ``None`` if the launch still works. ``unknown`` means that no recorded launch covers the
    case: ``because`` says so, and the finding omits the rule's own fix, because there may be no fault.
    ``title``, ``fix``, ``source``, ``severity`` and ``instead`` replace the rule's own, if they are not
    ``None``. ``stage`` is when the failure shows, if the outcome usually shows at another stage.
    ``by_chance`` are other recorded outcomes of the same launch.
    """

    evidence: tuple[str, ...]
    outcome: Outcome | None = None
    because: str = ""
    title: str = ""
    fix: str = ""
    source: str = ""
    severity: Severity | None = None
    instead: tuple[Mode, ...] | None = None
    stage: LaunchStage | None = None
    by_chance: tuple[Outcome, ...] = ()

    @property
    def shows(self) -> LaunchStage:
        """The stage of the launch at which the failure shows."""
        return self.stage or _STAGES[self.outcome or "ok"]


Check = Callable[[Case], Hit | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check with its id, and the text of its findings.

    ``facts`` are dotted names of all facts that the check may ask the case for. The pages of the rules show
    these facts; a test compares them with the facts that the checks read. ``advice`` marks a rule that never
    changes an outcome, so its missing facts do not matter. ``instead`` are launch modes that avoid the fault.
    The finding names the best mode of ``instead`` that works before ``fix``. ``fix`` itself names no mode,
    because a rule judges one mode only. ``accelerator`` is the outcome of the GPUs if the rule fires as an
    error. ``programs`` are the programs that the rule concerns. If ``programs`` is empty, the rule concerns
    all programs if one of its modes needs no MPI. Otherwise the rule concerns only programs that find their
    ranks through MPI.
    """

    id: str
    title: str
    severity: Severity
    fix: str
    source: str
    check: Check = field(repr=False)
    facts: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = MODES
    advice: bool = False
    instead: tuple[Mode, ...] = ()
    programs: tuple[ProgramName, ...] = ()
    accelerator: Accelerator | None = None

    def concerns(self, plan: Plan) -> bool:
        """Return whether the rule applies to a launch."""
        if plan.mode not in self.modes:
            return False
        if self.programs:
            return plan.program in self.programs
        return program_of_name(plan.program).BY_MPI or bool(_NO_MPI & set(self.modes))


def rule(
    id: str,  # noqa: A002 - the word that findings, logs and documentation use
    title: str,
    *,
    severity: Severity,
    fix: str,
    source: str,
    facts: tuple[str, ...] = (),
    modes: tuple[Mode, ...] = MODES,
    advice: bool = False,
    instead: tuple[Mode, ...] = (),
    programs: tuple[ProgramName, ...] = (),
    accelerator: Accelerator | None = None,
) -> Callable[[Check], Rule]:
    """Make a rule from a function. To register a rule, add a line in :mod:`toolkit.engine.registry`."""

    def made(check: Check) -> Rule:
        return Rule(
            id, title, severity, fix, source, check, facts, modes, advice, instead, programs, accelerator
        )

    return made
