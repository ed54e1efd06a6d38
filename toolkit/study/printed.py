"""The figures that a job without a trainer printed, as a result; pure."""

import math

import msgspec

from toolkit.study.figures import history


class PrintedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of each line of a job's output that has some; null in JSON for a value that is not a
    number."""

    schema: str = "toolkit.figures/1"
    job: str
    rows: tuple[dict[str, float | None], ...]


def printed_figures(job: str, output: str) -> PrintedFigures:
    """Return the figures in the output of a job."""
    rows = history(output)
    return PrintedFigures(
        job=job,
        rows=tuple({k: v if math.isfinite(v) else None for k, v in row.items()} for row in rows),
    )
