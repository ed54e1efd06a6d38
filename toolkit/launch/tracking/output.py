"""Find in a job's output the rank that failed first, and its last lines; pure."""

import re
from dataclasses import dataclass

from toolkit.knowledge.slurm import slurm

_LABEL = re.compile(r"^ *(\d+): ?(.*)$")
"""What ``srun --label`` puts before a line: the task number, padded to the widest."""


@dataclass(frozen=True, slots=True)
class RankFailure:
    """The first rank that failed, its node, Slurm's words for its end, and its last lines."""

    rank: int
    node: str
    how: str
    last_lines: tuple[str, ...]


def first_failure(output: str, lines: int = 12) -> RankFailure | None:
    """Return the rank that failed first; srun kills the other ranks after that."""
    failed, everything = re.compile(slurm().failed.pattern), output.splitlines()
    for line in everything:
        if found := failed.match(line):
            rank = int(re.search(r"\d+", found["tasks"])[0])  # type: ignore[index]  # the pattern holds a digit
            said = [text for text in (text_of_rank(one, rank) for one in everything) if text and text.strip()]
            return RankFailure(rank, found["node"], found["how"], tuple(said[-lines:]))
    return None


def text_of_rank(line: str, rank: int) -> str | None:
    """Return the text of a labelled line if ``rank`` wrote it, else ``None``."""
    found = _LABEL.match(line)
    return found[2] if found and int(found[1]) == rank else None


def displayed_line(line: str) -> str:
    """Return a line to show: without its label for rank 0, with ``[rank N]`` for the others."""
    found = _LABEL.match(line)
    if not found:
        return line
    rank, text = int(found[1]), found[2]
    return text if rank == 0 else f"[rank {rank}] {text}"
