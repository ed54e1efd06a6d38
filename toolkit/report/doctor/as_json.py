"""Format the result of ``toolkit doctor`` as JSON. docs/json-doctor.md describes the schema."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from toolkit.engine.rule import Rule
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.prediction import Plan, Prediction, Verdict
from toolkit.report.doctor.findings import NONE_SILENCED
from toolkit.report.rules import general_fix, happens

SCHEMA = "toolkit.doctor/1"


def verdict_json(
    host: HostFacts, image: ImageFacts, verdict: Verdict, silenced: Mapping[str, str] = NONE_SILENCED
) -> bytes:
    """Return the verdict (the predictions and findings) about an image on a host as JSON.

    ``silenced`` has the ids of the findings that ``toolkit doctor`` hides, each with the reason.
    """
    return _text(
        {
            "schema": SCHEMA,
            "image": image,
            "host": host,
            "predictions": [_prediction(p) for p in verdict.predictions],
            "chosen": verdict.chosen,
            "findings": verdict.findings,
            "silenced": _occurring(silenced, verdict.findings),
        }
    )


def host_json(
    host: HostFacts, findings: tuple[Finding, ...], silenced: Mapping[str, str] = NONE_SILENCED
) -> bytes:
    """Return the findings about a host as JSON, for a call of ``toolkit doctor`` without an image."""
    return _text(
        {
            "schema": SCHEMA,
            "image": None,
            "host": host,
            "predictions": [],
            "chosen": None,
            "findings": findings,
            "silenced": _occurring(silenced, findings),
        }
    )


def rules_json(rules: Iterable[Rule]) -> bytes:
    """Return the rules as JSON (schema ``toolkit.rules/1``)."""
    return _text(
        {
            "schema": "toolkit.rules/1",
            "rules": [
                {
                    "id": r.id,
                    "title": r.title,
                    "severity": r.severity,
                    "needs": r.facts,
                    "happens": happens(r),
                    "modes": r.modes,
                    "fix": general_fix(r),
                    "source": r.source,
                    "advice": r.advice,
                }
                for r in rules
            ],
        }
    )


def _occurring(silenced: Mapping[str, str], findings: tuple[Finding, ...]) -> dict[str, str]:
    return {f.id: silenced[f.id] for f in findings if f.id in silenced}


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return {
        "mode": prediction.mode,
        "outcome": prediction.outcome,
        "because": prediction.because,
        "by_chance": prediction.by_chance,
        "accelerator": prediction.accelerator,
        "basis": prediction.basis,
        "beyond": prediction.beyond,
        "findings": prediction.findings,
        "missing": prediction.missing,
        "plan": _plan(prediction.plan) if prediction.plan else None,
    }


def _plan(plan: Plan) -> dict[str, Any]:
    words: dict[str, Any] = msgspec.to_builtins(plan)
    del words["mode"]
    if plan.launcher[0] == "srun":
        words = {"srun": list(plan.launcher[1:]), **words}
    return words


def _text(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)
