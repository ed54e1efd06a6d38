"""Find the warning in which Dask says why the workers of a program died."""

import re
from collections.abc import Sequence

from toolkit.engine.logs.clues import Clue, strip_label
from toolkit.engine.logs.joblines import Output
from toolkit.engine.logs.line_class import classify

_WORKERS_DIED = re.compile(r"\bKilledWorker\b|\b(?:all|those) workers? died while running\b")
"""A pattern for Dask's exception after several workers died while they ran the same task."""

_WHY = re.compile(r"\bdistributed\.(?:nanny|worker)\b")
_BEFORE = 200
"""Maximum number of lines between the warning and the exception."""


def death_of_worker(output: Output, clue: Clue, causes: Sequence[Clue]) -> Clue | None:
    """Return the warning in which Dask says why a worker died.

    ``clue`` is a later exception, which says only that workers died. ``None`` if there is no such warning.
    """
    del causes  # Dask logs the reason as a warning
    if not _WORKERS_DIED.search(clue.line.text):
        return None
    for position, line in output.before(clue.position, _BEFORE):
        row = classify(strip_label(line.text)) if _WHY.search(line.text) else None
        if row is not None and row.class_ in {"out-of-memory", "signal"}:
            return Clue(position, line, row.class_, 3, "cause", row.retry)
    return None
