"""Find the rank that failed first, and the last lines of this rank, in a job's output."""

import re
from dataclasses import dataclass

from toolkit.knowledge.slurm import slurm

_LABEL = re.compile(r"^ *(\d+): ?(.*)$")
"""The label of a line from ``srun --label``: the task number, padded to the width of the largest number."""


_KILLED = re.compile(r"Killed")
_CANCELLED = re.compile(r"error: \*\*\* STEP \S{1,40} ON \S{1,80} CANCELLED AT ")
"""A pattern for the line in which Slurm says that it stops all ranks of a step."""


@dataclass(frozen=True, slots=True)
class RankFailure:
    """The rank that failed first, its node, Slurm's description of the failure, and the last lines that the
    rank printed.
    """

    rank: int
    node: str
    reason: str
    last_lines: tuple[str, ...]


def first_failure(output: str, lines: int = 12) -> RankFailure | None:
    """Return the rank that failed first; after this failure, srun kills the other ranks. The result is
    ``None`` if Slurm reports no rank, or killed all ranks together.
    """
    everything = output.splitlines()
    reports = _reports(everything)
    if not reports or _are_killed_together(reports, everything):
        return None
    own = [match for match in reports if not _KILLED.match(match["how"])]
    # Slurm reports the ranks that it killed with the step before a rank that exited by itself.
    match = (own if own and _is_cancelled_before(reports[0], everything) else reports)[0]
    rank = int(re.search(r"\d+", match["tasks"])[0])  # type: ignore[index] # the pattern has a digit
    texts = [text for text in (text_of_rank(line, rank) for line in everything) if text and text.strip()]
    return RankFailure(rank, match["node"], match["how"], tuple(texts[-lines:]))


def killed_together(output: str) -> bool:
    """Return whether Slurm cancelled the step before it reported any rank, and then only reports killed ranks
    on several nodes. With Open MPI 5, a rank that is killed ends the step in this way.
    """
    everything = output.splitlines()
    return _are_killed_together(_reports(everything), everything)


def _are_killed_together(reports: list[re.Match[str]], everything: list[str]) -> bool:
    killed = len(reports) > 1 and all(_KILLED.match(match["how"]) for match in reports)
    return killed and _is_cancelled_before(reports[0], everything)


def _is_cancelled_before(report: re.Match[str], everything: list[str]) -> bool:
    first = everything.index(report.string)
    return any(_CANCELLED.search(line) for line in everything[:first])


def _reports(everything: list[str]) -> list[re.Match[str]]:
    """Return the lines in which srun reports how ranks ended."""
    failed = re.compile(slurm().failed.pattern)
    return [match for line in everything if (match := failed.match(line))]


def text_of_rank(line: str, rank: int) -> str | None:
    """Return the text of a labelled line if ``rank`` wrote the line, else ``None``."""
    match = _LABEL.match(line)
    return match[2] if match and int(match[1]) == rank else None


def displayed_line(line: str) -> str:
    """Return a line for display: rank 0 without its label, other ranks with ``[rank N]``."""
    match = _LABEL.match(line)
    if not match:
        return line
    rank, text = int(match[1]), match[2]
    return text if rank == 0 else f"[rank {rank}] {text}"
