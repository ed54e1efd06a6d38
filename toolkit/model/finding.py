"""A finding: one fault or remark of the engine, with its evidence."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, why it matters and how to fix it.

    ``id`` names the rule in logs, tickets and documentation. ``evidence`` has one line for each fact: its
    source and its value. It is never empty. ``fix`` has a line for each step, the best first,
    or one line with semicolons between the steps. ``modes`` are the launch modes that the finding concerns;
    empty means all. ``undecided`` says that the rule could not judge: a fact was missing, or no such case was
    ever measured.
    """

    id: str
    severity: Severity
    title: str
    evidence: tuple[str, ...]
    fix: str
    source: str
    modes: tuple[str, ...] = ()
    undecided: bool = False


Retry = Literal["transient", "node", "user", "image", "site"]
"""Who can remove a fault: time, Slurm by other nodes, the user, the author of the image, administrators."""

ADVICE: dict[str, str] = {
    "transient": "Submit the same job again, without changes.",
    "node": "Submit the job again on other nodes (`--exclude`).",
    "user": "Submitting the same job again will not help.",
    "image": "Submitting the same job again will not help; change the image first.",
    "site": "Submitting again will not help until the network, the service or the cluster has changed.",
}
"""The advice for each value of ``retry``, as a sentence."""

KnownRole = Literal["cause", "possible", "consequence", "harmless"]


class RootLine(msgspec.Struct, frozen=True, kw_only=True):
    """The line with which a failure began.

    ``rank`` and ``node`` are empty if the output does not name them. ``frame`` is the last frame of the
    user's own code in a Python traceback. ``waited``: the rank waited for others until a time limit.
    ``file`` names the file of several that has the line; ``number`` is 0 for an answer of ``sacct``.
    """

    number: int
    text: str
    rank: str = ""
    node: str = ""
    frame: str = ""
    waited: bool = False
    file: str = ""


class ErrorCode(msgspec.Struct, frozen=True, kw_only=True):
    """A number or name in the root line, and its meaning."""

    family: str
    number: int | None = None
    name: str = ""
    text: str = ""
    means: str = ""
    source: str = ""


class FaultClass(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is true for every fault of a class, and steps that fix it, the best first."""

    id: str
    title: str
    means: str
    fix: tuple[str, ...]


class KnownFault(Finding, frozen=True, kw_only=True):
    """A message that toolkit knows; ``role`` says whether it is the cause of this failure."""

    role: KnownRole = "cause"


class OutputExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of job output, as ``toolkit explain --json`` prints it.

    ``root`` and ``fault`` are set for every output that ends in failure. ``codes`` are error numbers in the
    root line, or in the lines that report the end of ranks. ``findings`` are known messages, causes before
    consequences. ``ended`` are lines with which launchers report ended ranks, ``consequences`` are lines of
    ranks that lost another rank. ``retry`` says who can end the fault; it is empty without a failure.
    ``unread`` are the numbers of the first and the last line between which not all was read.
    """

    schema: str = "toolkit.explain/2"
    root: RootLine | None = None
    fault: FaultClass | None = None
    codes: tuple[ErrorCode, ...] = ()
    retry: Retry | Literal[""] = ""
    findings: tuple[KnownFault, ...] = ()
    ended: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()
    unread: tuple[int, int] | None = None


class LaunchFault(msgspec.Struct, frozen=True):
    """A fault, visible before the job waits in the queue, that would stop the job or prevent its start."""

    message: str
    fix: str
