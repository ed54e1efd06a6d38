"""Define a rule: a small pure function with an id, the facts that it may read, and the text of
its findings.
"""

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

TRY_IT = "try the launch: `toolkit doctor IMAGE --live --mode MODE`"
"""The fix for a launch whose outcome is unknown."""
TRY_SHORT = "try the launch: `toolkit launch --image IMAGE --mode MODE --force --time 5 -- COMMAND`"
"""The fix for an unknown outcome in a launch mode without MPI; ``toolkit doctor --live`` does not try such
modes.
"""


def trial_of(mode: Mode) -> str:
    """Return the command that tries a launch mode with a small job."""
    return TRY_IT if mode in MPI_MODES else TRY_SHORT


class LaunchStage(IntEnum):
    """The stages of a launch, in order. The outcome depends on the first stage that fails.

    If several rules report failures in the same stage, the first of these rules in
    :mod:`toolkit.engine.registry` decides the outcome.
    """

    SUBMIT = 1
    LAUNCHER = 2
    """The launcher fails before it starts a rank."""
    START = 3
    """A rank fails before it looks for its launcher, so even a job with one rank fails."""
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
    """The result of a rule that found a fault: the evidence, the outcome, and the reason in one clause.

    ``outcome`` is ``None`` if the launch works in spite of the fault. The outcome ``unknown`` means that no
    recorded launch is like this launch. For an ``unknown`` outcome, ``because`` names the property of the
    launch that no recorded launch has. The finding for an ``unknown`` outcome omits the rule's fix, because
    the launch may work. If given, ``title``, ``fix``, ``source``, ``severity`` and ``instead`` replace the
    values of the rule. ``stage`` is the stage of the launch in which the failure occurs; ``None`` means the
    usual stage of the outcome. ``by_chance`` are other outcomes that recorded runs of the same launch had by
    chance.
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
        """The stage of the launch in which the failure occurs."""
        return self.stage or _STAGES[self.outcome or "ok"]


Check = Callable[[Case], Hit | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check function with its id and the text of its findings.

    ``facts`` are dotted names of all facts that the check may read. The documentation of the rules shows the
    names in ``facts``; a test compares the names with the facts that the checks read. ``advice`` marks a rule
    that never changes an outcome. If such a rule needs an unknown fact, the outcome does not become unknown.
    ``instead`` are launch modes that avoid the fault. The finding first names the best working mode of
    ``instead``, then shows the text of ``fix``. ``fix`` itself names no launch mode, because a rule judges
    only one mode. If the rule reports an error, ``accelerator`` says whether the program then computes only
    on CPUs or fails on the GPUs. ``programs`` are the programs that the rule concerns. If ``programs`` is
    empty and one of ``modes`` needs no MPI, the rule concerns all programs. If ``programs`` is empty and all
    of ``modes`` need MPI, the rule concerns only programs whose ranks find each other through MPI.
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
        """Return whether the rule applies to the launch mode and the program of a plan."""
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
    """Return a decorator that makes a rule from a check function. To register the rule, add it to the list in
    :mod:`toolkit.engine.registry`.
    """

    def made(check: Check) -> Rule:
        return Rule(
            id, title, severity, fix, source, check, facts, modes, advice, instead, programs, accelerator
        )

    return made
