"""Choose the finding that the user should fix first."""

from toolkit.engine.registry import RULES
from toolkit.model.finding import Finding
from toolkit.model.prediction import Mode, Verdict

_ADVICE = {rule.id for rule in RULES if rule.advice}
_OF_GPUS = {rule.id for rule in RULES if rule.accelerator == "gpu-failure"}


def main_fault(verdict: Verdict, mode: Mode | None = None) -> Finding | None:
    """Return the finding to fix first; ``None`` if no finding stops a launch.

    If the launch mode ``mode`` is given, the function ignores findings that concern only other modes. The
    finding to fix first is the finding that concerns the largest number of failing modes. A fix for a single
    mode is useless while another fault, such as a missing library, stops all modes.
    """
    found = [f for f in _possible_causes(verdict) if mode is None or not f.modes or mode in f.modes]
    return max(found, key=lambda f: len(_concerned_modes(f, verdict)), default=None)


def concerns_all(finding: Finding, verdict: Verdict) -> bool:
    """Return whether a finding concerns every failing launch mode."""
    return _concerned_modes(finding, verdict) == _failing_modes(verdict)


def _concerned_modes(finding: Finding, verdict: Verdict) -> tuple[Mode, ...]:
    return tuple(mode for mode in _failing_modes(verdict) if not finding.modes or mode in finding.modes)


def _failing_modes(verdict: Verdict) -> tuple[Mode, ...]:
    """Return the launch modes for which toolkit predicts a failure. Omit modes that the cluster does not
    offer, unless these are the only failing modes.
    """
    failing = [p for p in verdict.predictions if not p.works]
    tried = [p for p in failing if p.outcome != "unavailable"]
    return tuple(p.mode for p in tried or failing)


def _possible_causes(verdict: Verdict) -> list[Finding]:
    """Return the findings that can explain a failure, the most severe first."""
    of_gpus = _OF_GPUS if any(p.accelerator == "gpu-failure" for p in verdict.predictions) else set[str]()
    return [f for f in verdict.findings if f.severity != "info" and f.id not in _ADVICE - of_gpus]
