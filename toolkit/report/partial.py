"""The answer to a ticket: what each launch mode does if the usual holds, and what decides it."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.engine.partial import Conditional
from toolkit.model.prediction import Mode
from toolkit.report.lines import hung

_MODE = 17
_OUTCOME = 16


def answer(found: Mapping[Mode, Conditional], width: int | None = None) -> Iterator[str]:
    """Yield a line for each launch mode, then the facts that decide and how to get each."""
    yield "What you did not state is taken as usual. Then each launch mode:"
    yield ""
    for mode, one in found.items():
        assumed = " and ".join(fact.assumed for fact in one.decides)
        why = f"if {assumed}" if assumed else one.prediction.because
        yield from hung(f"  {mode:{_MODE}} {one.prediction.shown:{_OUTCOME}} ", why, width)
    facts = {fact.question.fact: fact for one in found.values() for fact in one.decides}
    if facts:
        yield ""
        yield "These facts decide; get them so:"
    for fact in facts.values():
        others = [outcome for outcome in fact.otherwise if outcome != "unknown"]
        other = f"; with another value {' or '.join(others)}" if others else ""
        yield ""
        yield from hung(f"  {fact.question.fact}: ", f"{fact.question.asks}{other}", width)
        yield f"      {fact.question.command}"


def as_json(found: Mapping[Mode, Conditional]) -> dict[str, Any]:
    """Return the same for programs."""
    return {
        "schema": "toolkit.ask/1",
        "modes": [
            {
                "mode": mode,
                "outcome": one.prediction.outcome,
                "because": one.prediction.because,
                "basis": one.prediction.basis,
                "decides": [
                    {
                        "fact": fact.question.fact,
                        "assumed": fact.assumed,
                        "otherwise": fact.otherwise,
                        "command": fact.question.command,
                    }
                    for fact in one.decides
                ],
            }
            for mode, one in found.items()
        ],
    }
