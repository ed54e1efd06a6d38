"""Translate Slurm's reasons for a waiting job into sentences with advice."""

import re

from toolkit.knowledge.slurm import Waiting, slurm


def waits_for_turn(reason: str) -> bool:
    """Return whether Slurm's reason means that the job only waits for free nodes or for earlier jobs."""
    return reason in slurm().reasons.in_turn


def describe_reason(reason: str) -> Waiting:
    """Return the description of Slurm's reason; for an unknown reason, a text that quotes the reason."""
    reasons = slurm().reasons
    # Slurm appends details after a comma: ReqNodeNotAvail,_UnavailableNodes:node[3-4]
    code, _, detail = reason.partition(",")
    if known := reasons.known.get(reason) or reasons.known.get(code):
        return known
    for row in reasons.like:
        if re.match(row.pattern, code):
            whose = "QOS" if code.startswith("QOS") else "account"
            nodes = re.search(r"(?:Unavailable|Required)Nodes:(\S+)", detail)
            where = f": {nodes[1]}" if nodes else ""
            return Waiting(why=row.why.format(whose) + where, todo=row.todo, never=row.never)
    return Waiting(why=f"Slurm's reason is {reason}")
