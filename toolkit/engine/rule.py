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
"""The fix for an unknown outcome in a launch mode with MPI."""
TRY_SHORT = "try the launch: `toolkit launch --image IMAGE --mode MODE --force --time 5 -- COMMAND`"
"""The fix for an unknown outcome in a launch mode without MPI, which ``doctor --live`` cannot test."""


def trial_of(mode: Mode) -> str:
    """Return the fix that asks the user to try a launch mode, with the command for this mode."""
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
    """The result of a rule that found a fault.

    ``evidence`` are lines from the facts and the plan that show the fault. ``outcome`` is the outcome of the
    launch, or ``None`` if the fault does not change the outcome. ``because`` is the reason for the outcome,
    in one clause. For the outcome ``unknown``, ``because`` says what toolkit's developers have not tested, or
    what toolkit does not know. The finding then recommends a trial launch instead of the rule's fix.

    If given, ``title``, ``fix``, ``source``, ``severity`` and ``instead`` replace the values of the rule.
    ``stage`` is the stage of the launch in which the failure occurs; ``None`` means the usual stage of the
    outcome. ``by_chance`` are outcomes other than ``outcome`` that the same launch can have by chance.
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
    def failing_stage(self) -> LaunchStage:
        """The stage of the launch in which the failure occurs."""
        return self.stage or _STAGES[self.outcome or "ok"]


Check = Callable[[Case], Hit | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check function with its id and the text of its findings.

    ``facts`` are dotted names of all facts that the check may read, such as ``host.gpu_driver``. ``modes``
    are the launch modes that the rule concerns. ``advice`` is true if the rule never changes the predicted
    outcome of a launch. Even if such a rule needs an unknown fact, the outcome does not become unknown.

    ``instead`` are launch modes that avoid the fault. If toolkit predicts that one of these modes works, the
    finding names the best of them before the text of ``fix``. ``fix`` itself names no launch mode, because a
    rule does not know whether other modes work. If the rule finds its fault, ``accelerator`` is the outcome
    for the GPUs: ``cpu-only`` or ``gpu-failure``. ``gpu-failure`` counts only if the severity of the finding
    is ``error``.

    ``programs`` are the programs that the rule concerns. If ``programs`` is empty and all of ``modes`` need
    MPI, the rule concerns only programs whose ranks find each other through MPI. If ``programs`` is empty and
    ``modes`` include a mode such as ``torch``, which needs no MPI, the rule concerns all programs.
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
    id: str,  # noqa: A002 - findings and documentation also call this value the id
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
