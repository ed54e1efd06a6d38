"""Findings of the engine and explanations of job output, with their evidence."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A fault or a remark: a title, the evidence, and the fix.

    ``id`` is the id of the rule that reports the finding. ``evidence`` contains one line for each fact, with
    the source and the value of the fact; ``evidence`` is never empty. ``fix`` contains the steps that can
    fix the fault, the best step first; a line break or a semicolon separates two steps. ``modes`` are the
    launch modes that the finding concerns; empty means all launch modes. ``undecided`` is true if the rule
    could not decide whether the fault exists: a fact is missing, or toolkit has no record of a similar
    launch.
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
"""Who or what can remove a fault: a later attempt (``transient``), other nodes (``node``), the user, the
image's author (``image``), or the site's administrators (``site``).
"""

ADVICE: dict[str, str] = {
    "transient": "Submit the same job again, without changes.",
    "node": "Submit the job again on other nodes (`--exclude`).",
    "user": "Without a change, the same job will probably fail again.",
    "image": "The same job will probably fail again; change the image or the installed software first.",
    "site": "The same job will probably fail again until the network, the service or the cluster changes.",
}
"""Value of :data:`Retry` → advice as a sentence."""

KnownRole = Literal["cause", "possible", "consequence", "harmless"]
"""What a known message reports: the cause of the failure, a possible cause, a consequence of the cause, or
something harmless.
"""


class RootLine(msgspec.Struct, frozen=True, kw_only=True):
    """The root line: the first line of job output that reports the failure.

    ``number`` is the line number; 0 means that ``text`` is from ``sacct``, not from the output. ``rank`` and
    ``node`` are the rank and the node that the line is about; empty if the output does not name them.
    ``frame`` is the last frame (file and line) of the user's code in a Python traceback. ``waited`` is true
    if the rank waited for other ranks until a time limit. ``collectives`` names the collective operations,
    such as allreduce, in which several ranks waited. If the job has several output files, ``file`` names the
    file that contains the root line.
    """

    number: int
    text: str
    rank: str = ""
    node: str = ""
    frame: str = ""
    waited: bool = False
    collectives: tuple[str, ...] = ()
    file: str = ""


class ErrorCode(msgspec.Struct, frozen=True, kw_only=True):
    """An error number or error name in the root line (the first line that reports the failure), and its
    meaning.
    """

    family: str
    number: int | None = None
    name: str = ""
    text: str = ""
    means: str = ""
    source: str = ""


class FaultClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class of faults: an explanation (``means``) that is true for every fault of the class, and steps that
    can fix such a fault, the best step first.
    """

    id: str
    title: str
    means: str
    fix: tuple[str, ...]


class KnownFault(Finding, frozen=True, kw_only=True):
    """A finding about a known message in job output. ``role`` says whether the message reports the cause of
    the job's failure.
    """

    role: KnownRole = "cause"


class OutputExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of job output that ``toolkit explain --json`` prints.

    ``root`` is the first line that reports the failure, and ``fault`` is the class of the fault; both are
    ``None`` if the output shows no failure. ``codes`` are error codes in the root line, or in the lines in
    which launchers report failed ranks. ``findings`` are about known messages in the output, causes before
    consequences. ``ended`` are the lines in which launchers report that ranks exited. ``consequences`` are
    the lines in which ranks report the loss of another rank. ``retry`` says who or what can remove the fault,
    such as the user or another node; ``retry`` is empty if the output shows no failure. ``unread`` is
    the first and the last line number of a range that toolkit read only in part, or ``None`` if toolkit read
    every line.
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
    """A fault that would stop a job or prevent its start; toolkit finds the fault before it submits
    the job.
    """

    message: str
    fix: str
