"""Collect the metrics in the output of a job that runs none of toolkit's trainers (pure functions)."""

import math

import msgspec

from toolkit.study.figures import history


class PrintedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics in a job's output. ``rows`` has one entry for each line that contains metrics. In JSON, NaN
    and infinity are null.
    """

    schema: str = "toolkit.figures/1"
    job: str
    rows: tuple[dict[str, float | None], ...]


def printed_figures(job: str, output: str) -> PrintedFigures:
    """Return the metrics in ``output``, the output of the job with the key ``job``."""
    rows = history(output)
    return PrintedFigures(
        job=job,
        rows=tuple({k: v if math.isfinite(v) else None for k, v in row.items()} for row in rows),
    )
