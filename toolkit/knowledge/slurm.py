"""``slurm.toml``: what Slurm reports about jobs, and its meaning."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.job import JobState


class States(Row, frozen=True, kw_only=True):
    """For each state of a job in toolkit's words: the words that Slurm uses for this state."""

    of: dict[JobState, tuple[str, ...]]


class Waiting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``why`` a job waits, as the end of a sentence, and ``todo``, empty if the user can only wait.

    ``never`` says that the job will not start by itself, however long it waits.
    """

    why: str
    todo: str = ""
    never: bool = False


class Like(Waiting, frozen=True, kw_only=True):
    """Reasons that begin as ``pattern`` says; ``{}`` in ``why`` is replaced by the QOS or account."""

    pattern: str


class Reasons(Row, frozen=True, kw_only=True):
    """Why jobs wait, in Slurm's codes: some by name, others by prefix.

    Jobs ``in_turn`` only wait for their turn; jobs ``passed_over`` get no turn at any priority.
    """

    in_turn: tuple[str, ...]
    passed_over: tuple[str, ...]
    known: dict[str, Waiting]
    like: tuple[Like, ...]


class Synonyms(Row, frozen=True, kw_only=True):
    """Words of Slurm that have the same meaning."""

    words: tuple[str, ...]


class PrintedLine(Row, frozen=True, kw_only=True):
    """A line that a program of Slurm prints; ``sample`` is a line that the pattern matches."""

    pattern: str
    sample: str


class SlurmKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``slurm.toml``."""

    states: States
    reasons: Reasons
    nothing: Synonyms
    forgotten: PrintedLine
    failed: PrintedLine
    unanswered: PrintedLine


@cache
def slurm() -> SlurmKnowledge:
    """Return the table of Slurm's words."""
    return read("slurm", SlurmKnowledge)


def state_of(word: str) -> JobState:
    """Return the state that a word of Slurm means; ``unknown`` for an unknown word."""
    # sacct appends this sign to a word that it truncates.
    return next((ours for ours, words in slurm().states.of.items() if word.rstrip("+") in words), "unknown")
