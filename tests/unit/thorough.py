"""The number of cases in the unit tests: a part by default, all with TOOLKIT_THOROUGH=1."""

import os
from collections.abc import Sequence
from typing import Any

THOROUGH = bool(os.environ.get("TOOLKIT_THOROUGH"))


def share(values: Sequence[Any], number: int, of: int) -> Sequence[Any]:
    """Return every ``of``-th value, beginning at one that depends on ``number``; all values if thorough."""
    return values if THOROUGH else values[number % of :: of]


def count(usual: int, thorough: int) -> int:
    """Return the number of examples with which a property is tested."""
    return thorough if THOROUGH else usual
