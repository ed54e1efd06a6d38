"""``examples.toml``: for every rule, its finding for one launch on which it fires."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import read
from toolkit.model.prediction import Mode, Outcome


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One finding, and the prediction for the launch; made from the tests of the rule."""

    title: str
    evidence: tuple[str, ...]
    mode: Mode
    outcome: Outcome
    because: str


class ExampleKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``examples.toml``."""

    rule: dict[str, Example]


def example(rule: str) -> Example | None:
    """Return the example of a rule; ``None`` if it has none."""
    return every_example().get(rule)


@cache
def every_example() -> dict[str, Example]:
    return read("examples", ExampleKnowledge).rule
