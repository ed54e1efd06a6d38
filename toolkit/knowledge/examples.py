"""``examples.toml``: an example finding for every rule, and the prediction of its launch."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import read
from toolkit.model.prediction import Mode, Outcome


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The finding of a rule for one launch, and the prediction of the launch. The tests of the rule create
    the example.
    """

    title: str
    evidence: tuple[str, ...]
    mode: Mode
    outcome: Outcome
    because: str


class ExampleKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``examples.toml``."""

    rule: dict[str, Example]


def example(rule: str) -> Example | None:
    """Return the example of a rule; ``None`` if it has none."""
    return every_example().get(rule)


@cache
def every_example() -> dict[str, Example]:
    return read("examples", ExampleKnowledge).rule
