"""Find in a job's output which rank failed first, and the last lines that this rank printed."""

import re
from dataclasses import dataclass

from toolkit.knowledge.slurm import slurm

_LABEL = re.compile(r"^ *(\d+): ?(.*)$")
"""A pattern for a line from ``srun --label``: the number of the rank, which srun pads with blanks, then the
text that the rank printed."""


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
    """Return the rank that failed first, with at most ``lines`` of its last lines.

    After the first failure, srun kills the other ranks and reports them as failed, too. The result is
    ``None`` if srun reports no failed rank, or if Slurm killed all ranks together.
    """
    everything = output.splitlines()
    reports = _reports(everything)
    if not reports or _are_killed_together(reports, everything):
        return None
    own = [match for match in reports if not _KILLED.match(match["how"])]
    # After Slurm cancels a step, srun may report killed ranks before the rank that exited by itself.
    match = (own if own and _is_cancelled_before(reports[0], everything) else reports)[0]
    rank = int(re.search(r"\d+", match["tasks"])[0])  # type: ignore[index] # the pattern has a digit
    texts = [text for text in (text_of_rank(line, rank) for line in everything) if text and text.strip()]
    return RankFailure(rank, match["node"], match["how"], tuple(texts[-lines:]))


def killed_together(output: str) -> bool:
    """Return whether Slurm killed all ranks together.

    In this case, the output does not show which rank failed first. The result is true if Slurm first cancels
    the step, and srun then reports only killed ranks, in at least two lines. For example, srun prints such
    lines if a signal kills a rank of Open MPI 5.
    """
    everything = output.splitlines()
    return _are_killed_together(_reports(everything), everything)


def _are_killed_together(reports: list[re.Match[str]], lines: list[str]) -> bool:
    killed = len(reports) > 1 and all(_KILLED.match(match["how"]) for match in reports)
    return killed and _is_cancelled_before(reports[0], lines)


def _is_cancelled_before(report: re.Match[str], lines: list[str]) -> bool:
    first = lines.index(report.string)
    return any(_CANCELLED.search(line) for line in lines[:first])


def _reports(lines: list[str]) -> list[re.Match[str]]:
    """Return a match for each line in which srun reports how ranks failed."""
    failed = re.compile(slurm().failed.pattern)
    return [match for line in lines if (match := failed.match(line))]


def text_of_rank(line: str, rank: int) -> str | None:
    """Return the text after the label of ``srun --label`` if ``rank`` wrote the line, else ``None``."""
    match = _LABEL.match(line)
    return match[2] if match and int(match[1]) == rank else None


def displayed_line(line: str) -> str:
    """Return a line of output for display, without the label of ``srun --label``.

    Lines of ranks other than rank 0 start with ``[rank N]``. A line without a label stays unchanged.
    """
    match = _LABEL.match(line)
    if not match:
        return line
    rank, text = int(match[1]), match[2]
    return text if rank == 0 else f"[rank {rank}] {text}"
