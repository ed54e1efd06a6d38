"""``slurm.toml``: what Slurm says of jobs, and what that means."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.job import JobState


class States(Row, frozen=True, kw_only=True):
    """Slurm's words for the state of a job, by ours."""

    of: dict[JobState, tuple[str, ...]]


class Waiting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``why`` a job waits, as the end of a sentence, and ``todo``, empty where waiting is all there is to do.

    ``never`` says that it will not start by itself, however long it waits.
    """

    why: str
    todo: str = ""
    never: bool = False


class Like(Waiting, frozen=True, kw_only=True):
    """Reasons that begin as ``pattern`` says; ``{}`` in ``why`` stands for QOS or account."""

    pattern: str


class Reasons(Row, frozen=True, kw_only=True):
    """Why jobs wait, in Slurm's codes: some of them by name, others by how they begin.

    Jobs ``in_turn`` wait for nothing but their turn; those ``passed_over`` have none at any priority.
    """

    in_turn: tuple[str, ...]
    passed_over: tuple[str, ...]
    known: dict[str, Waiting]
    like: tuple[Like, ...]


class Synonyms(Row, frozen=True, kw_only=True):
    """Words that mean one and the same."""

    words: tuple[str, ...]


class PrintedLine(Row, frozen=True, kw_only=True):
    """A line that a program of Slurm prints; ``sample`` is one that the pattern finds."""

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
    """Return what is known of Slurm's words."""
    return read("slurm", SlurmKnowledge)


def state_of(word: str) -> JobState:
    """Return the state that a word of Slurm's means; ``unknown`` for one that is not known."""
    # sacct puts the sign behind a word that it cuts off.
    return next((ours for ours, words in slurm().states.of.items() if word.rstrip("+") in words), "unknown")
