"""What stands in the way of a launch, of all that a verdict found: the one thing to mend first; pure."""

from toolkit.engine.registry import RULES
from toolkit.model.finding import Finding
from toolkit.model.prediction import Mode, Verdict

_ADVICE = {rule.id for rule in RULES if rule.advice}
_OF_GPUS = {rule.id for rule in RULES if rule.accelerator == "gpu-failure"}


def hindrance(verdict: Verdict, asked: Mode | None = None) -> Finding | None:
    """Return the finding to mend first, for ``asked`` if that is named; ``None`` if none stands in the way.

    It is the one that concerns the most ways that fail, as with a library that is missing, whoever starts the
    ranks: what stands in the way of one of them alone may be mended, and that way fails all the same.
    """
    found = [f for f in _in_the_way(verdict) if asked is None or not f.modes or asked in f.modes]
    return max(found, key=lambda f: len(_concerned(f, verdict)), default=None)


def concerns_all(finding: Finding, verdict: Verdict) -> bool:
    """Tell whether a finding is about every way that fails."""
    return _concerned(finding, verdict) == _failing(verdict)


def _concerned(finding: Finding, verdict: Verdict) -> tuple[Mode, ...]:
    return tuple(mode for mode in _failing(verdict) if not finding.modes or mode in finding.modes)


def _failing(verdict: Verdict) -> tuple[Mode, ...]:
    """Return the ways that fail; those that the place does not have only where there are no others."""
    failing = [p for p in verdict.predictions if not p.works]
    tried = [p for p in failing if p.outcome != "unavailable"]
    return tuple(p.mode for p in tried or failing)


def _in_the_way(verdict: Verdict) -> list[Finding]:
    """Return the findings that can have led to an outcome, the worst first."""
    of_gpus = _OF_GPUS if any(p.accelerator == "gpu-failure" for p in verdict.predictions) else set[str]()
    return [f for f in verdict.findings if f.severity != "info" and f.id not in _ADVICE - of_gpus]
