"""Shorten (fold) lists of node names to Slurm's notation, such as ``node[1-3,7]``, and expand this notation
to names (pure functions).
"""

import re
from collections.abc import Iterable
from itertools import product

_NUMBERED = re.compile(r"(.*?)(\d{1,9})", re.ASCII | re.DOTALL)
_PART = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_MOST = 100_000
"""Maximum number of nodes in one part of a list, such as ``node[1-9]``. No cluster has more nodes, so
:func:`expand` treats a larger part as invalid.
"""


def fold(names: Iterable[str]) -> str:
    """Return node names in Slurm's notation, such as ``node[1-2,4]`` for ``node1``, ``node2`` and
    ``node4``.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names), key=natural_key):
        match = _NUMBERED.fullmatch(name)
        if match:
            # All node numbers without leading zeros form one group.
            # Node numbers with leading zeros form a group for each number of digits: 01 to 09 are one group,
            # 001 to 099 are another group.
            width = len(match[2]) if match[2].startswith("0") or len(match[2]) == 1 else 0
            key = (match[1], width if width > 1 else 0)
            groups.setdefault(key, []).append(int(match[2]))
        else:
            plain.append(name)
    folded = [_fold_numbers(prefix, width, numbers) for (prefix, width), numbers in groups.items()]
    return ",".join([*plain, *folded])


def expand(text: str) -> tuple[str, ...]:
    """Expand a list in Slurm's notation to node names without duplicates; invalid parts stay unchanged."""
    names: list[str] = []
    for part in _PART.findall(text):
        if part:
            names += _expand_part(part)
    return tuple(dict.fromkeys(names))


def natural_key(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key that puts ``node2`` before ``node10``."""
    parts = re.findall(r"[0-9]{1,9}|[^0-9]+|[0-9]+", name)
    return tuple((p.isdecimal(), int(p) if p.isdecimal() and len(p) < 10 else 0, p) for p in parts)


def _fold_numbers(prefix: str, width: int, numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs]
    return f"{prefix}[{','.join(shown)}]" if len(numbers) > 1 else f"{prefix}{shown[0]}"


def _expand_part(part: str) -> list[str]:
    pieces = re.split(r"(\[[^\]]*\])", part)
    choices: list[list[str]] = []
    count = 1
    for piece in pieces:
        options = _numbers(piece[1:-1]) if piece.startswith("[") else [piece]
        count *= len(options)
        if not options or count > _MOST:
            return [part]
        choices.append(options)
    return ["".join(chosen) for chosen in product(*choices)]


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for text in ranges.split(","):
        match = _RANGE.fullmatch(text.strip())
        if match is None:
            return []
        first, last = match[1], match[2] or match[1]
        if int(last) - int(first) > _MOST:
            return []
        numbers += [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]
    return numbers
