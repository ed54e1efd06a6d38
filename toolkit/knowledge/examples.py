"""Read ``examples.toml``: example launches for the rules in :mod:`toolkit.engine.rules`. Each example has the
rule's finding for a launch, and the prediction for this launch.
"""

from functools import cache

import msgspec

from toolkit.knowledge.reading import read
from toolkit.model.prediction import Mode, Outcome


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The finding of a rule for one launch, and the prediction for this launch."""

    title: str
    evidence: tuple[str, ...]
    mode: Mode
    outcome: Outcome
    because: str


class ExampleKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``examples.toml``."""

    rule: dict[str, Example]


def example(rule: str) -> Example | None:
    """Return the example of a rule; ``None`` if the rule has no example."""
    return every_example().get(rule)


@cache
def every_example() -> dict[str, Example]:
    return read("examples", ExampleKnowledge).rule
