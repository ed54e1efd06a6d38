"""How a rule finds, as it looks, that facts are missing which only now matter."""

from toolkit.engine.case import Case
from toolkit.engine.rule import Lacks


def missing(case: Case, *names: str) -> Lacks | None:
    """Return those of the facts that nobody knows; ``None`` where all are known or absent."""
    lacking = tuple(name for name in names if case.state(name) == "unknown")
    return Lacks(lacking) if lacking else None


def unread(case: Case, *names: str) -> Lacks | None:
    """Return those of the facts that were asked for and could not be read.

    For rules that decide an outcome: facts that an earlier toolkit saved never asked, and are no reason to
    withhold every prediction; a question that failed is one.
    """
    return Lacks(lacking) if (lacking := tuple(name for name in names if _failed(case, name))) else None


def _failed(case: Case, name: str) -> bool:
    side, _, field = name.partition(".")
    facts = case.host_facts if side == "host" else case.image_facts
    return field in facts.unknown
