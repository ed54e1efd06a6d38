"""Describe in words, from Slurm's reason code, why a job waits and what the user can do.

The words are in ``recipes/knowledge/slurm.toml``.
"""

import re

from toolkit.knowledge.slurm import Waiting, slurm


def waits_for_turn(reason: str) -> bool:
    """Return whether Slurm's reason code means that the job only waits for free nodes or for earlier jobs."""
    return reason in slurm().reasons.in_turn


def describe_reason(reason: str) -> Waiting:
    """Return the description of Slurm's reason code; for an unknown code, a text that quotes the code."""
    reasons = slurm().reasons
    # Slurm may append details to the code, after a comma: ReqNodeNotAvail,_UnavailableNodes:node[3-4]
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
