"""Predict launches from the few facts in a support ticket. For all other facts, toolkit assumes usual values,
and names the assumed facts that decide the outcome.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict_plan, working_modes
from toolkit.engine.usual_facts import fill, possible_images, with_fact
from toolkit.engine.words import mpi_name
from toolkit.knowledge.usual import TicketQuestion, usual_properties
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import Mode, Outcome, Plan, Prediction, Request
from toolkit.program.choose import modes_of

MOST_FACTS = 3
"""Maximum number of facts that an answer lists as deciding the outcome."""


@dataclass(frozen=True, slots=True)
class DecidingFact:
    """A fact that the user's ticket does not state, and its assumed value. ``otherwise`` lists the outcomes
    for other common values, if these outcomes differ from the predicted outcome.
    """

    question: TicketQuestion
    assumed: str
    otherwise: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class TicketAnswer:
    """The prediction for a launch mode, with usual values for the facts that the ticket does not state.
    ``decides`` names the unstated facts that decide the outcome.
    """

    prediction: Prediction
    decides: tuple[DecidingFact, ...]


@dataclass(frozen=True, slots=True)
class TicketAnswers:
    """The answer for each launch mode, the best mode that works (``None`` if no mode works), and the facts
    that the user should look up first.
    """

    modes: dict[Mode, TicketAnswer]
    chosen: Mode | None
    decides: tuple[DecidingFact, ...]


Planner = Callable[[HostFacts, ImageFacts], Plan]
"""A function that plans a launch from the facts of host and image."""


def answer_ticket(
    host: HostFacts, image: ImageFacts, request: Request, mode: Mode, planner: Planner | None = None
) -> TicketAnswer:
    """Predict a launch from the ticket's facts, with usual values for all other facts. Also find which of the
    assumed facts decide the outcome.

    ``planner`` is the function that plans the launch from the facts of host and image; the default is
    toolkit's own planner.
    """
    made = planner or (lambda on, of: plan(on, of, request, mode))
    filled, *with_other_mpis = (fill(host, one, mode) for one in possible_images(host, image, mode))
    said = _predict_with(*filled, request, made)
    by_mpi = [_predict_with(*facts, request, made) for facts in with_other_mpis]
    if said.outcome == "unknown" and len({one.outcome for one in by_mpi}) == 1:
        filled, said = with_other_mpis[0], by_mpi[0]  # the outcome is the same with each usual MPI
    found: list[DecidingFact] = []
    for question in usual_properties().question:
        if not _is_unstated(host, image, question.fact):
            continue
        if question.needs and _is_unstated(host, image, question.needs):
            continue
        if question.fact == "image.mpi":
            others = [one.outcome for one in by_mpi]
        else:
            others = [
                _predict_with(*_with(filled, question.fact, value), request, made).outcome
                for value in question.values
            ]
        changed = tuple(dict.fromkeys(outcome for outcome in others if outcome != said.outcome))
        if changed or (not others and question.fact in said.missing):
            found.append(DecidingFact(question, _assumption(filled, question), changed))
    return TicketAnswer(said, tuple(found[:MOST_FACTS]))


def answers(host: HostFacts, image: ImageFacts, request: Request) -> TicketAnswers:
    """Predict each launch mode of the image, and find the unstated facts that decide the outcomes.

    If a mode works, the facts that decide the outcome of the best mode come first. If no mode works, the
    facts that may decide an ``unknown`` outcome come first. All other facts follow. In each of these two
    groups, a fact that decides the outcome of more modes comes earlier.
    """
    asked = (request.mode,) if request.mode else modes_of(fill(host, image)[1], request)
    tried: tuple[Mode, ...] = tuple(mode for mode in asked if mode != "gloo")
    found = {mode: answer_ticket(host, image, request, mode) for mode in tried}
    works = working_modes(tuple(one.prediction for one in found.values()))
    chosen = works[0] if works else None
    facts = [fact for one in found.values() for fact in one.decides]
    first = [found[chosen]] if chosen else [a for a in found.values() if a.prediction.outcome == "unknown"]
    own = {fact.question.fact for one in first for fact in one.decides}
    named = Counter(fact.question.fact for fact in facts)
    order = sorted(named, key=lambda name: (name not in own, -named[name]))
    by_name = {fact.question.fact: fact for fact in reversed(facts)}
    return TicketAnswers(found, chosen, tuple(by_name[name] for name in order[:MOST_FACTS]))


def _assumption(pair: tuple[HostFacts, ImageFacts], question: TicketQuestion) -> str:
    """Return the usual value of a fact as text; empty if the fact stays unknown."""
    side, *parts = question.fact.split(".")
    value: Any = pair[0] if side == "host" else pair[1]
    for part in parts:
        value = getattr(value, part, None)
    if value is None:
        return ""
    if isinstance(value, ImageMpi):
        value = mpi_name(value)
    return question.usual.replace(
        "{value}", ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    )


def _with(pair: tuple[HostFacts, ImageFacts], fact: str, value: object) -> tuple[HostFacts, ImageFacts]:
    """Return the facts of host and image with a new value for one fact. If the fact is a field of something
    absent, the result has no change.
    """
    side, *parts = fact.split(".")
    facts: Any = pair[0] if side == "host" else pair[1]
    if len(parts) == 1:
        changed = with_fact(facts, parts[0], tuple(value) if isinstance(value, list) else value)
    else:
        inner = getattr(facts, parts[0])
        if inner is None:
            return pair
        given = tuple(value) if isinstance(value, list) else value
        changed = msgspec.structs.replace(
            facts, **{parts[0]: msgspec.structs.replace(inner, **{parts[1]: given})}
        )
    return (changed, pair[1]) if side == "host" else (pair[0], changed)


def _is_unstated(host: HostFacts, image: ImageFacts, fact: str) -> bool:
    side, *parts = fact.split(".")
    facts: Any = host if side == "host" else image
    if parts[0] in facts.absent:
        return False
    for part in parts:
        facts = getattr(facts, part, None)
    return facts is None


def _predict_with(host: HostFacts, image: ImageFacts, request: Request, planner: Planner) -> Prediction:
    return predict_plan(host, image, request, planner(host, image))
