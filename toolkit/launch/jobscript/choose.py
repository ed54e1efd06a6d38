"""Choose the launch mode of a job from the engine's predictions and the user's options."""

from dataclasses import dataclass

from toolkit.engine.main_fault import main_fault
from toolkit.engine.rule import trial_of
from toolkit.errors import CheckFailed
from toolkit.model.finding import Finding
from toolkit.model.prediction import Mode, Plan, Prediction, Verdict
from toolkit.probe.evidence import NO_ANSWER

_UNDECIDED = {"unknown", "unavailable"}


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The chosen launch mode with its prediction and its plan.

    ``forced`` is true if the user launches the job in this mode although toolkit does not predict a success.
    """

    prediction: Prediction
    plan: Plan
    forced: bool

    @property
    def because(self) -> str:
        if self.forced:
            return f"forced, although toolkit predicts '{self.prediction.shown}': {self.prediction.why}"
        return self.prediction.why


def choose(
    verdict: Verdict, mode: Mode | None, *, force: bool, alternatives: tuple[Mode, ...] = ()
) -> ModeChoice:
    """Return the launch mode ``mode`` or, if it is ``None``, the mode that the engine chose.

    If toolkit does not predict that a launch in this mode works, the function returns the mode only with
    ``force``.

    If ``mode`` is ``None`` and the engine chose no mode, the function returns the first mode of
    ``alternatives`` with a predicted success. The modes in ``alternatives`` work only for some programs; for
    example, Gloo works only for Horovod.

    Raises:
        CheckFailed: if toolkit does not predict that the mode works and ``force`` is false, or if there is no
            mode or no plan for the mode. The error has the reason and the fix.
    """
    wanted = mode or verdict.chosen or next((m for m in alternatives if verdict.ok(m)), None)
    if wanted is None:
        reasons = tuple(f"{p.mode}: {p.shown}: {p.why}" for p in verdict.predictions)
        raise CheckFailed("no launch mode is predicted to work", fix=_fix(verdict, None), detail=reasons)
    prediction = verdict.of(wanted)
    if not prediction.works and not force:
        raise CheckFailed(
            f"toolkit predicts '{prediction.shown}' for mode {wanted}: {prediction.why}",
            fix=_fix(verdict, wanted),
            detail=[line for finding in _findings_of(verdict, prediction) for line in _lines(finding)],
        )
    if prediction.plan is None:
        raise CheckFailed(f"mode {wanted} is not available: {prediction.why}", fix=_fix(verdict, wanted))
    return ModeChoice(prediction, prediction.plan, forced=not prediction.works)


def _findings_of(verdict: Verdict, prediction: Prediction) -> list[Finding]:
    return [f for f in verdict.findings if f.id in prediction.findings]


def _lines(finding: Finding) -> list[str]:
    return [f"{finding.severity} {finding.id}: {finding.title}", *(f"    {e}" for e in finding.evidence)]


def _fix(verdict: Verdict, mode: Mode | None) -> str:
    if verdict.chosen and verdict.chosen != mode:
        return (
            f"leave out `--mode`; toolkit then uses {verdict.chosen}, which is predicted to work "
            f"(`--force` launches {mode} anyway)"
        )
    if mode and verdict.of(mode).outcome == "unknown":
        return _try_out(verdict.of(mode))
    open_ones = [p for p in verdict.predictions if p.outcome == "unknown"]
    if mode is None and open_ones and all(p.outcome in _UNDECIDED for p in verdict.predictions):
        return _try_out(open_ones[0])
    fault = main_fault(verdict, mode)
    return fault.fix if fault else "see the reasons: `toolkit doctor IMAGE`"


def _try_out(prediction: Prediction) -> str:
    """Return the fix for a mode with an unknown outcome.

    If the host answered, the fix has a command that tries the mode. Without a trial, each rank of a job in
    this mode could silently run as a world of size 1.
    """
    if NO_ANSWER in prediction.because:
        return "the host did not answer in time: run the command again"
    trial = trial_of(prediction.mode).replace("MODE", prediction.mode)
    return f"name the program: `toolkit doctor IMAGE -- COMMAND`; or {trial}"
