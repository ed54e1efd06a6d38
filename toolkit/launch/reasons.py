"""Slurm's reasons for a job that waits, as a person says them, with what can be done; pure.

The codes are those of https://slurm.schedmd.com/job_reason_codes.html (Slurm 24.11 and before).
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waiting:
    """``why`` a job waits, as the end of a sentence, and ``todo``, empty where waiting is all there is to do.

    ``never`` says that it will not start by itself, however long it waits.
    """

    why: str
    todo: str = ""
    never: bool = False


_PLANNED = "ReqNodeNotAvail,_May_be_reserved_for_other_job"
"""What Slurm's backfill says of a job that named its nodes, while others compute on them."""

_IN_TURN = {"Priority", "Resources", _PLANNED}

_OTHER = "cancel it and launch it again with another --"

_REASONS: dict[str, Waiting] = {
    "Priority": Waiting("jobs with a higher priority are first"),
    "Resources": Waiting("it is among the next, and waits for nodes to become free"),
    "BeginTime": Waiting("it is not to start before a set time"),
    "Dependency": Waiting("it waits for another job to end, as it was asked to"),
    "DependencyNeverSatisfied": Waiting(
        "the job that it waits for ended otherwise than it was to",
        "cancel it, and launch it again",
        never=True,
    ),
    "JobHeldUser": Waiting("it is held by its owner", "let it go: scontrol release NUMBER", never=True),
    "JobHeldAdmin": Waiting(
        "it is held by the centre, or failed to start", "ask the centre's support", never=True
    ),
    "JobHoldMaxRequeue": Waiting(
        "it was started again as often as Slurm allows", "see why it ends: toolkit jobs logs", never=True
    ),
    "PartitionTimeLimit": Waiting(
        "it asks for more time than its partition allows", f"{_OTHER}time or --partition", never=True
    ),
    "PartitionNodeLimit": Waiting(
        "it asks for more or fewer nodes than its partition allows, or some of them are down",
        f"{_OTHER}nodes or --partition",
        never=True,
    ),
    "PartitionDown": Waiting("its partition starts no jobs just now"),
    "PartitionInactive": Waiting("its partition takes no jobs just now", f"{_OTHER}partition"),
    "PartitionConfig": Waiting("its partition cannot take such a job", f"{_OTHER}partition", never=True),
    "AccountNotAllowed": Waiting(
        "its account may not use this partition", f"{_OTHER}account or --partition", never=True
    ),
    "QOSNotAllowed": Waiting(
        "its QOS may not be used by this account or partition", f"{_OTHER}qos", never=True
    ),
    "InvalidAccount": Waiting("its account does not exist", f"{_OTHER}account", never=True),
    "InvalidQOS": Waiting("its QOS does not exist", f"{_OTHER}qos", never=True),
    "BadConstraints": Waiting(
        "no node has what it asks for", f"{_OTHER}constraint, --gpus-per-node or --memory", never=True
    ),
    "Reservation": Waiting("its reservation has not begun, or has no free nodes"),
    "ReservationDeleted": Waiting("its reservation is gone", f"{_OTHER}reservation", never=True),
    "InactiveLimit": Waiting("the system's limit of inactivity is reached"),
    "Licenses": Waiting("it waits for a licence, which others use"),
    "NodeDown": Waiting("a node that it needs is down"),
    "FrontEndDown": Waiting("no front end is up"),
    "Cleaning": Waiting("its last run is being cleaned up"),
    "JobArrayTaskLimit": Waiting("as many tasks of its array run as may run at once"),
    "Prolog": Waiting("its nodes are being prepared"),
    "MaxRequeueReached": Waiting("it was started again as often as Slurm allows", never=True),
    "SystemFailure": Waiting("Slurm or a file system of it failed", "ask the centre's support"),
    "NonZeroExitCode": Waiting("it ended with an error"),
}

_PATTERNS: tuple[tuple[re.Pattern[str], Waiting], ...] = (
    (
        re.compile(r"ReqNodeNotAvail|NodesRequired|Nodes_required|Nodes required"),
        Waiting(
            "nodes that it needs are down, reserved or kept for maintenance",
            "if it is maintenance, a shorter --time may start before; sinfo -R says more",
        ),
    ),
    (
        re.compile(r"(QOS|Assoc)Max\w*PerJob|QOSMin\w+|(QOS|Assoc)Max\w*PerNode\w*"),
        Waiting(
            "it alone asks for more, or less, than its {} allows",
            f"{_OTHER}time, --nodes or --qos",
            never=True,
        ),
    ),
    (
        re.compile(r"QOSGrp\w+|QOSJobLimit|QOSResourceLimit|QOSTimeLimit|QOSUsageThreshold"),
        Waiting("all jobs of its QOS together have reached a limit", "wait for them, or use another --qos"),
    ),
    (
        re.compile(r"QOSMax\w+|Max\w+Per(User|Account)\w*"),
        Waiting("your jobs, or your account's, together have reached a limit of this QOS"),
    ),
    (
        re.compile(r"AssocGrp\w+Minutes\w*"),
        Waiting(
            "its account has used up its computing time",
            "ask for more, or use another --account (sshare shows what is left)",
        ),
    ),
    (re.compile(r"AssocGrp\w+"), Waiting("all jobs of its account together have reached a limit")),
    (re.compile(r"AssocMax\w+|AssociationJobLimit|AssociationResourceLimit"), Waiting(
        "your jobs of this account together have reached a limit"
    )),
)  # fmt: skip


def in_turn(reason: str) -> bool:
    """Tell a job that waits for nothing but its turn."""
    return reason in _IN_TURN


def in_words(reason: str) -> Waiting:
    """Say a reason in words; one that is not known is given as Slurm gives it."""
    if reason == _PLANNED:
        return Waiting("the nodes that it asked for are in use, or kept for a job before it")
    # Details stand behind a comma: ReqNodeNotAvail,_UnavailableNodes:node[3-4]
    code, _, detail = reason.partition(",")
    if known := _REASONS.get(code):
        return known
    for pattern, waiting in _PATTERNS:
        if pattern.match(code):
            whose = "QOS" if code.startswith("QOS") else "account"
            nodes = re.search(r"(?:Unavailable|Required)Nodes:(\S+)", detail)
            where = f": {nodes[1]}" if nodes else ""
            return Waiting(waiting.why.format(whose) + where, waiting.todo, waiting.never)
    return Waiting(f"Slurm's reason is {reason}")
