"""Choose the number of cases in unit tests: a part by default, all cases with TOOLKIT_THOROUGH=1."""

import os
from collections.abc import Sequence
from typing import Any

THOROUGH = bool(os.environ.get("TOOLKIT_THOROUGH"))


def share(values: Sequence[Any], number: int, of: int) -> Sequence[Any]:
    """Return every ``of``-th value from the index ``number % of``; with TOOLKIT_THOROUGH=1, all values."""
    return values if THOROUGH else values[number % of :: of]


def count(usual: int, thorough: int) -> int:
    """Return a property test's number of examples: ``thorough`` with TOOLKIT_THOROUGH=1, else ``usual``."""
    return thorough if THOROUGH else usual
