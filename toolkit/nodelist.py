"""Check lists of nodes in Slurm's notation."""

import re

_NODE = r"[A-Za-z0-9][A-Za-z0-9._-]*(\[\d+(-\d+)?(,\d+(-\d+)?)*\][A-Za-z0-9._-]*)*"
FORM = rf"{_NODE}(,{_NODE})*"
RULE = "write nodes as Slurm does: node1,node[3-5]"

MOST_NODES = 65_536
"""Slurm's maximum number of nodes (MAX_SLURM_NODES), and of names in a range such as ``node[1-4]`` (MAX_RANGE
in hostlist.c).
"""

_LONGEST = 12
"""The maximum number of digits in a number. Without a limit, ``int`` fails for thousands of digits."""


def wrong(text: str) -> str:
    """Return a message that says what is wrong with a list of nodes; empty for a valid list.

    >>> wrong("node[1-4,7],login1"), wrong("node[1-")
    ('', 'write nodes as Slurm does: node1,node[3-5]')
    """
    # Use fullmatch: a pattern that ends in $ would accept a line break at the end.
    if not re.fullmatch(FORM, text, re.ASCII):
        return RULE
    for part in (part for inside in re.findall(r"\[([^]]*)\]", text) for part in inside.split(",")):
        first, _, last = part.partition("-")
        if max(len(first), len(last)) > _LONGEST:
            return f"write each number in a node name with at most {_LONGEST} digits"
        if last and int(last) < int(first):
            return f"write the smaller number of the range {part} first"
        if last and int(last) - int(first) >= MOST_NODES:
            return f"the range {part} has more than {MOST_NODES} nodes, the maximum in Slurm"
    return ""
