"""Apply every rule to one launch and predict its outcome."""

from dataclasses import dataclass, replace

import msgspec

from toolkit.engine.basis import basis
from toolkit.engine.case import Case
from toolkit.engine.guarded import Moot, Undecided
from toolkit.engine.reason import explain_ok
from toolkit.engine.rule import TRY_IT, Hit, LaunchStage, Rule, trial_of
from toolkit.engine.traits import asks_for_gpus
from toolkit.model.finding import Finding
from toolkit.model.prediction import Accelerator, Mode, Outcome, Prediction


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """The result of one rule for one launch: the fault that the rule found (``hit``), or the names of unknown
    facts that the rule needs (``missing``).
    """

    rule: Rule
    hit: Hit | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """One launch, the results of the rules, and the predicted outcome."""

    case: Case
    answers: tuple[RuleAnswer, ...]
    prediction: Prediction

    @property
    def decided_by(self) -> str:
        """Return the id of the rule that predicts the first failure of a launch; empty if no rule predicts a
        failure.
        """
        first = _first(self.answers)
        return first.rule.id if first else ""

    def findings(self, working_modes: tuple[Mode, ...] = ()) -> tuple[Finding, ...]:
        """Return the findings. ``working_modes`` are the launch modes that work, the best mode first; a fix
        may recommend one of these modes.
        """
        return tuple(_finding(self.case, answer, working_modes) for answer in self.answers)


def judge(case: Case, rules: tuple[Rule, ...]) -> tuple[Prediction, tuple[Finding, ...]]:
    """Return the prediction and the findings for one launch; the findings do not recommend another launch
    mode.
    """
    judged = ask_rules(case, rules)
    return judged.prediction, judged.findings()


def ask_rules(case: Case, rules: tuple[Rule, ...]) -> Judged:
    """Apply the rules to one launch. This function creates no findings, because their fixes may name launch
    modes whose predictions are not known yet.
    """
    answers = tuple(a for r in rules if r.concerns(case.plan) if (a := _ask(case, r)))
    judged = Judged(case, answers, _outcome(case, answers))
    rests, outside = basis(case, judged.decided_by)
    return replace(judged, prediction=msgspec.structs.replace(judged.prediction, basis=rests, beyond=outside))


def is_ok(case: Case, rules: tuple[Rule, ...]) -> bool:
    """Return whether :func:`ask_rules` predicts ``ok``. This function is faster than :func:`ask_rules`,
    because it stops at the first rule that prevents ``ok``.
    """
    return not any(_prevents(a) for r in rules if r.concerns(case.plan) if (a := _ask(case, r)))


def _prevents(answer: RuleAnswer) -> bool:
    """Return whether the result of one rule prevents the outcome ``ok``."""
    return answer.hit.outcome is not None if answer.hit else not answer.rule.advice


def _outcome(case: Case, answers: tuple[RuleAnswer, ...]) -> Prediction:
    """Predict the outcome of a launch from the results of the rules; the results are in the order of the
    rules.

    The failure in the earliest stage of the launch decides the outcome, even if rules after the deciding rule
    need unknown facts. If a rule before the deciding rule needs an unknown fact, another failure may occur
    first, so the outcome is unknown. The prediction also lists other outcomes that sometimes occur by chance.
    """
    undecided = [a for a in answers if a.missing and not a.rule.advice]
    ids = tuple(dict.fromkeys(a.rule.id for a in answers))
    missing = tuple(dict.fromkeys(m for a in undecided for m in a.missing))
    if first := _first(answers):
        before = answers[: answers.index(first)]
        doubts = [a for a in before if a.hit and a.hit.outcome == "unknown"]
        named = tuple(o for a in doubts if a.hit for o in a.hit.by_chance if o != "ok")
        earlier = [a for a in (*undecided, *doubts) if a in before and not (a.hit and a.hit.by_chance)]
        return _failure_prediction(case, first, earlier, named, ids, missing)
    if missing:
        because = "unknown facts: " + "; ".join(dict.fromkeys(map(case.why_unknown, missing)))
        return Prediction(
            mode=case.mode, outcome="unknown", because=because, findings=ids, missing=missing, plan=case.plan
        )
    chance = tuple(dict.fromkeys(o for a in answers if a.hit for o in a.hit.by_chance))
    gpus, why = _accelerator(case, answers)
    return Prediction(
        mode=case.mode,
        outcome="ok",
        because=(f"{explain_ok(case)}, but the GPUs do not work: {why}")
        if gpus == "gpu-failure"
        else explain_ok(case),
        by_chance=chance,
        accelerator=gpus,
        findings=ids,
        plan=case.plan,
    )


def _accelerator(case: Case, answers: tuple[RuleAnswer, ...]) -> tuple[Accelerator, str]:
    """Return whether the ranks of a working launch use the GPUs. For ``gpu-failure``, also return the reason;
    otherwise, the reason is empty.
    """
    if not asks_for_gpus(case.host_facts, case.request, case.plan):
        return "not-asked", ""
    about = [a for a in answers if a.rule.accelerator]
    failed = [a for a in about if a.hit and a.rule.accelerator == "gpu-failure" and _is_error(a)]
    if failed and failed[0].hit:
        return "gpu-failure", failed[0].hit.title or failed[0].rule.title
    if any(a.missing for a in about):
        return "unknown", ""
    return ("cpu-only" if any(a.rule.accelerator == "cpu-only" for a in about) else "gpu"), ""


def _is_error(answer: RuleAnswer) -> bool:
    return answer.hit is not None and (answer.hit.severity or answer.rule.severity) == "error"


def _first(answers: tuple[RuleAnswer, ...]) -> RuleAnswer | None:
    """Return the result of the rule that predicts the failure in the earliest stage of a launch; ``None`` if
    no rule predicts a failure.
    """
    return min((a for a in answers if a.hit and a.hit.outcome), key=_failure_stage, default=None)


def _ask(case: Case, rule: Rule) -> RuleAnswer | None:
    try:
        said = rule.check(case)
    except Moot:
        return None
    except Undecided as undecided:
        return RuleAnswer(rule, missing=undecided.names)
    if said and said.outcome == "singletons" and case.request.has_one_rank:
        said = replace(said, outcome=None, severity="info")  # a world of size 1 is right for one rank
    return RuleAnswer(rule, said) if said else None


def _failure_stage(answer: RuleAnswer) -> LaunchStage:
    return answer.hit.failing_stage if answer.hit else LaunchStage.UNKNOWN


def _failure_prediction(
    case: Case,
    answer: RuleAnswer,
    earlier_answers: list[RuleAnswer],
    chances: tuple[Outcome, ...],
    ids: tuple[str, ...],
    missing: tuple[str, ...],
) -> Prediction:
    hit = answer.hit
    if hit is None or hit.outcome is None:  # the caller passes only results with an outcome
        raise ValueError(answer)
    because = hit.because or hit.title or answer.rule.title
    outcome: Outcome = hit.outcome
    chance = tuple(dict.fromkeys(o for o in (*hit.by_chance, *chances) if o != outcome))
    if earlier_answers:
        lacking = "; ".join(dict.fromkeys(doubt for a in earlier_answers for doubt in _doubts(case, a)))
        outcome, because = "unknown", f"{because}, unless an earlier fault occurs; unknown facts: {lacking}"
        chance = ()
    plan = None if outcome == "unavailable" else case.plan
    return Prediction(
        mode=case.mode,
        outcome=outcome,
        because=because,
        by_chance=chance,
        findings=ids,
        missing=missing,
        plan=plan,
    )


def _doubts(case: Case, answer: RuleAnswer) -> tuple[str, ...]:
    if answer.hit:
        return (answer.hit.because or answer.hit.title or answer.rule.title,)
    return tuple(case.why_unknown(name) for name in answer.missing)


def _finding(case: Case, answer: RuleAnswer, working_modes: tuple[Mode, ...]) -> Finding:
    rule, hit = answer.rule, answer.hit
    if hit is None:
        return Finding(
            id=rule.id,
            severity="info",
            title=f"Not decided: {rule.title}",
            evidence=tuple(case.why_unknown(name) for name in answer.missing),
            fix="give the missing facts: " + ", ".join(answer.missing),
            source=rule.source,
            modes=(case.mode,),
            undecided=True,
        )
    open_one = hit.outcome == "unknown"
    severity = hit.severity or rule.severity
    doubt = f"Not decided: {hit.because}" if open_one and hit.because else ""
    return Finding(
        id=rule.id,
        severity="warning" if open_one and severity == "error" else severity,
        title=hit.title or doubt or rule.title,
        evidence=hit.evidence,
        fix=_fix(case, rule, hit, working_modes),
        source=hit.source or rule.source,
        modes=(case.mode,),
        undecided=open_one,
    )


def _fix(case: Case, rule: Rule, hit: Hit, working_modes: tuple[Mode, ...]) -> str:
    """Return the fix of a finding. If another launch mode avoids the fault and works, the fix names this mode
    first.
    """
    instead = rule.instead if hit.instead is None else hit.instead
    other = next((mode for mode in working_modes if mode in instead and mode != case.mode), None)
    # A launch with an unknown outcome may work without a fix, so its finding recommends a short trial job.
    fix = (hit.fix or (TRY_IT if hit.outcome == "unknown" else rule.fix)).replace(TRY_IT, trial_of(case.mode))
    return f"use mode {other}; or {fix}" if other else fix
