"""Format the answer to a support ticket (a user's question with a few facts): the outcome of each launch
mode, and the facts on which the outcomes depend.
"""

from collections.abc import Iterator
from typing import Any

from toolkit.engine.conditional import TicketAnswer, TicketAnswers
from toolkit.report.lines import wrap_hanging

_MODE = 17
_OUTCOME = 16


def answer(answers: TicketAnswers, width: int | None = None) -> Iterator[str]:
    """Yield the lines of the answer to a ticket: first the answer in one sentence, then the outcome of each
    launch mode. The last lines show the facts on which the outcomes depend, each with the command that prints
    it.
    """
    yield from wrap_hanging("", _first(answers), width)
    yield ""
    for mode, ticket_answer in answers.modes.items():
        yield from wrap_hanging(
            f"  {mode:{_MODE}} {ticket_answer.prediction.shown:{_OUTCOME}} ", _why(ticket_answer), width
        )
    if answers.decides:
        yield ""
        yield "The prediction depends on these facts. Get the facts with these commands:"
    for fact in answers.decides:
        outcomes = [outcome for outcome in fact.otherwise if outcome != "unknown"]
        alternative = f"; for some values, the outcome is {' or '.join(outcomes)}" if outcomes else ""
        yield ""
        yield from wrap_hanging(f"  {fact.question.fact}: ", f"{fact.question.asks}{alternative}", width)
        yield f"      {fact.question.command}"


def _first(answers: TicketAnswers) -> str:
    """Return the first line of the answer, which says whether the image runs on the cluster."""
    if answers.chosen is None:
        return _without_mode(answers)
    assumed = _assumptions(answers.modes[answers.chosen])
    return f"Yes, if {assumed}: {answers.chosen}." if assumed else f"Yes: {answers.chosen}."


def _without_mode(answers: TicketAnswers) -> str:
    """Return the answer to a ticket for which no launch mode is known to work."""
    unknown = [
        mode for mode, ticket_answer in answers.modes.items() if ticket_answer.prediction.outcome == "unknown"
    ]
    if not unknown:
        return "No: with the facts that you gave, no launch mode works on a typical cluster."
    if len(unknown) == len(answers.modes):
        return "Unknown: the facts that you gave are not enough."
    return f"Unknown for {', '.join(unknown)}; no other launch mode works on a typical cluster."


def _assumptions(ticket_answer: TicketAnswer) -> str:
    return " and ".join(fact.assumed for fact in ticket_answer.decides if fact.assumed)


def _why(ticket_answer: TicketAnswer) -> str:
    """Return the reason for a launch mode's outcome, and toolkit's assumptions about unknown facts."""
    assumed = _assumptions(ticket_answer)
    return (
        f"{ticket_answer.prediction.because}, if {assumed}" if assumed else ticket_answer.prediction.because
    )


def as_json(answers: TicketAnswers) -> dict[str, Any]:
    """Return the answer to a support ticket as JSON values (schema ``toolkit.ask/1``)."""
    return {
        "schema": "toolkit.ask/1",
        "chosen": answers.chosen,
        "ask": [fact.question.fact for fact in answers.decides],
        "modes": [
            {
                "mode": mode,
                "outcome": ticket_answer.prediction.outcome,
                "because": ticket_answer.prediction.because,
                "basis": ticket_answer.prediction.basis,
                "decides": [
                    {
                        "fact": fact.question.fact,
                        "assumed": fact.assumed,
                        "otherwise": fact.otherwise,
                        "command": fact.question.command,
                    }
                    for fact in ticket_answer.decides
                ],
            }
            for mode, ticket_answer in answers.modes.items()
        ],
    }
