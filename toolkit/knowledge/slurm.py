"""Read ``slurm.toml``: the meaning of Slurm's words for job states and for the reasons why jobs wait."""

from functools import cache

import msgspec

from toolkit.knowledge.reading import Row, read
from toolkit.model.job import JobState


class States(Row, frozen=True, kw_only=True):
    """Slurm's words for job states. ``of`` maps each job state of toolkit to Slurm's words for this state."""

    of: dict[JobState, tuple[str, ...]]


class Waiting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meaning of a reason code: why a job waits, and what the user can do.

    ``why`` is a clause that explains the reason code. ``todo`` is an instruction for the user, or empty.
    ``never`` is true if the job does not start unless the user or an administrator acts.
    """

    why: str
    todo: str = ""
    never: bool = False


class Like(Waiting, frozen=True, kw_only=True):
    """The meaning of all reason codes that match ``pattern``.

    toolkit replaces ``{}`` in ``why`` by "QOS" or "account", according to the start of the reason code.
    """

    pattern: str


class Reasons(Row, frozen=True, kw_only=True):
    """The meaning of Slurm's reason codes for waiting jobs: by name (``known``) or by pattern (``like``).

    Jobs with a reason in ``in_turn`` only wait for other jobs in the queue. Jobs with a reason in
    ``passed_over``, such as held jobs, do not start, whatever their priority is.
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
    """The content of ``slurm.toml``.

    ``nothing`` lists Slurm's words for a missing value. The last three fields are patterns for messages.
    ``forgotten`` says that the controller no longer knows a job. ``failed`` says that a task failed.
    ``unanswered`` says that the controller did not answer sbatch.
    """

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
    """Return toolkit's job state for Slurm's word; ``unknown`` if ``slurm.toml`` lacks the word."""
    # sacct appends + to a word that it truncates.
    return next((ours for ours, words in slurm().states.of.items() if word.rstrip("+") in words), "unknown")
