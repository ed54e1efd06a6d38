"""Find the rank that failed first, and the last lines of this rank, in a job's output."""

import re
from dataclasses import dataclass

from toolkit.knowledge.slurm import slurm

_LABEL = re.compile(r"^ *(\d+): ?(.*)$")
"""The label of a line from ``srun --label``: the task number, padded to the width of the largest number."""


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
    """Return the rank that failed first; after this failure, srun kills the other ranks."""
    failed, everything = re.compile(slurm().failed.pattern), output.splitlines()
    for line in everything:
        if match := failed.match(line):
            rank = int(re.search(r"\d+", match["tasks"])[0])  # type: ignore[index] # the pattern has a digit
            texts = [
                text for text in (text_of_rank(line, rank) for line in everything) if text and text.strip()
            ]
            return RankFailure(rank, match["node"], match["how"], tuple(texts[-lines:]))
    return None


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
