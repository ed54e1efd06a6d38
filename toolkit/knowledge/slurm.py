"""Read ``slurm.toml``: the meaning of Slurm's words for job states and for the reasons why jobs wait."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.job import JobState


class States(Row, frozen=True, kw_only=True):
    """Slurm's words for each job state; the key in ``of`` is toolkit's name of the state."""

    of: dict[JobState, tuple[str, ...]]


class Waiting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason why a job waits, and what the user can do. ``why`` is the end of a sentence about the job.
    ``todo`` is an instruction; it may be empty.

    ``never`` is true if the job never starts without a change.
    """

    why: str
    todo: str = ""
    never: bool = False


class Like(Waiting, frozen=True, kw_only=True):
    """The meaning of reason codes that match ``pattern``; ``why`` contains ``{}`` in place of the word "QOS"
    or "account".
    """

    pattern: str


class Reasons(Row, frozen=True, kw_only=True):
    """The meaning of Slurm's reason codes for waiting jobs: by name (``known``) or by pattern (``like``).

    A job with a reason in ``in_turn`` starts when its turn in the queue comes. Jobs with a reason in
    ``passed_over`` do not start, whatever their priority.
    """

    in_turn: tuple[str, ...]
    passed_over: tuple[str, ...]
    known: dict[str, Waiting]
    like: tuple[Like, ...]


class Synonyms(Row, frozen=True, kw_only=True):
    """Words in Slurm's output that have the same meaning."""

    words: tuple[str, ...]


class PrintedLine(Row, frozen=True, kw_only=True):
    """A pattern for a line that one of Slurm's commands prints; ``sample`` is a line that matches the
    pattern.
    """

    pattern: str
    sample: str


class SlurmKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``slurm.toml``."""

    states: States
    reasons: Reasons
    nothing: Synonyms
    forgotten: PrintedLine
    failed: PrintedLine
    unanswered: PrintedLine


@cache
def slurm() -> SlurmKnowledge:
    """Return the content of ``slurm.toml``."""
    return read("slurm", SlurmKnowledge)


def state_of(word: str) -> JobState:
    """Return toolkit's job state for a state word from Slurm; ``unknown`` for an unknown word."""
    # sacct appends + to a word that it truncates.
    return next((ours for ours, words in slurm().states.of.items() if word.rstrip("+") in words), "unknown")
