"""Format the phases of a job's start as text. Examples of phases are the wait in the queue and the start of
the container.
"""

from toolkit.report.plain import join_lines
from toolkit.report.table import table
from toolkit.study.start_parts import JobStart

_RANK_PARTS = "mount, interpreter, imports, rendezvous and first batch"


def start_text(start: JobStart) -> str:
    """Return a table of the phases in seconds, followed by the time until the first batch."""
    size = f" (nodes: {start.nodes}, ranks: {start.ranks})" if start.nodes and start.ranks else ""
    rows = [(part.part, f"{part.seconds:.2f}") for part in start.parts]
    parts = table(("phase of the start", "seconds"), rows).splitlines()
    return join_lines([f"{start.job}{size}", *parts, *_totals(start)])


def _totals(start: JobStart) -> list[str]:
    if start.first_step_seconds is None:
        return [f"Only toolkit's trainers record the times of {_RANK_PARTS}."]
    begun = (
        "submission" if any(part.part == "queue" for part in start.parts) else "the start of the job script"
    )
    lines = [f"first batch: {start.first_step_seconds:.2f} s after {begun}"]
    if start.preflight_seconds:
        preflight = start.preflight_seconds
        rest = start.first_step_seconds - preflight
        lines.append(f"first batch minus {preflight:.2f} s for the preflight (a short test): {rest:.2f} s")
    if start.reads is not None:
        lines.append(f"read calls of rank 0 before the first batch: {start.reads:,}")
    return lines
