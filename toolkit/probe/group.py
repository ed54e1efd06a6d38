"""Group nodes with equal facts, so that a report about a thousand nodes has only a few lines (pure
functions).
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.model.facts import HostFacts
from toolkit.probe.hostlist import fold, natural_key
from toolkit.units import format_memory

_APART = frozenset(
    {
        "schema",
        "place",
        "evidence",
        "absent",
        "unknown",
        "slurm",
        "schedulers",
        "compute_nodes",
        "differs",
        "shm",
        "user_namespaces_limit",
    }
)
"""Fields that toolkit ignores when it compares nodes. For ``shm``, toolkit ignores only small differences
(``_NEAR``).

Most of these fields do not describe a single node. ``user_namespaces_limit`` varies between nodes of the same
type, because the kernel derives it from the memory size, which varies slightly.
"""
_NEAR = 1.05
"""Two sizes of /dev/shm count as equal if their ratio is at most this factor. By default, the size of
/dev/shm is half of the memory size, which varies slightly between nodes of the same type.
"""
FIELDS = tuple(f.name for f in msgspec.structs.fields(HostFacts) if f.name not in _APART or f.name == "shm")
"""The fields that toolkit compares, in the order of :class:`HostFacts`."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group of nodes with equal facts; ``facts`` are the facts of the first node in the group.

    ``differs`` lists the fields in which this group differs from the largest group.
    """

    nodes: tuple[str, ...]
    facts: HostFacts
    differs: tuple[str, ...] = ()


def group_nodes(nodes: Mapping[str, HostFacts]) -> tuple[Group, ...]:
    """Return the groups of nodes with equal facts, the largest group first."""
    sizes = _sizes(nodes)
    keys = {name: _key(name, facts, sizes) for name, facts in nodes.items()}
    members: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(nodes, key=natural_key):
        members.setdefault(keys[name], []).append(name)
    ordered = sorted(members.items(), key=lambda item: -len(item[1]))
    groups: list[Group] = []
    for key, names in ordered:
        differs = tuple(
            f
            for f, first_value, value in zip(FIELDS, ordered[0][0], key, strict=True)
            if first_value != value
        )
        groups.append(Group(nodes=tuple(names), facts=nodes[names[0]], differs=differs))
    return tuple(groups)


def differences(first: HostFacts, second: HostFacts) -> tuple[str, ...]:
    """Return the names of the fields that differ between two machines."""
    pair = {"one": first, "other": second}
    sizes = _sizes(pair)
    keys = [_key(name, facts, sizes) for name, facts in pair.items()]
    return tuple(
        f for f, first_value, second_value in zip(FIELDS, *keys, strict=True) if first_value != second_value
    )


def different_fields(groups: tuple[Group, ...]) -> dict[str, str]:
    """Map each field that differs between the groups to a text with the field's value in each group."""
    names = [f for f in FIELDS if any(f in group.differs for group in groups)]
    return {f: "; ".join(f"{fold(g.nodes)}: {format_field(g.facts, f)}" for g in groups) for f in names}


def format_field(facts: HostFacts, name: str) -> str:
    """Return the value of a field as one line of text."""
    value = getattr(facts, name)
    if value is None:
        return "none" if name in facts.absent else "not known"
    if name in {"shm", "locked_memory"}:
        return "unlimited" if value < 0 else format_memory(value)
    if name in {"mpis", "folder_mpis"}:
        return ", ".join(f"{m.implementation} {m.version or '?'}" for m in value) or "none"
    if name == "runtime":
        how = {True: "setuid", False: "unprivileged", None: "setuid not known"}[value.setuid]
        lacks = "".join(f", without {bind.partition(':')[0]}" for bind in value.unbound)
        return f"{value.name} {value.version} {how}{lacks}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" if v else k for k, v in value.items()) or "none"
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _key(name: str, facts: HostFacts, sizes: Mapping[int, int]) -> tuple[str, ...]:
    return tuple(_value(name, facts, field, sizes) for field in FIELDS)


def _value(name: str, facts: HostFacts, field: str, sizes: Mapping[int, int]) -> str:
    value: Any = getattr(facts, field)
    if value is None:
        # An absent fact and an unknown fact get different texts, so that they do not compare as equal.
        return "absent" if field in facts.absent else "unknown"
    if field == "shm":
        value = sizes[value]
    elif field == "tmpdir":
        # The path in TMPDIR may contain the job id or the node's name.
        # Replace job id and node name, so that the paths of equal nodes are equal.
        value = re.sub(r"\d+", "#", value.replace(name, "@"))
    return msgspec.json.encode(value, order="sorted").decode()


def _sizes(nodes: Mapping[str, HostFacts]) -> dict[int, int]:
    """Map each size of /dev/shm to the smallest size that toolkit treats as equal to this size."""
    near: dict[int, int] = {}
    last = 0
    for size in sorted({facts.shm for facts in nodes.values() if facts.shm is not None}):
        near[size] = near[last] if last and size <= last * _NEAR else size
        last = size
    return near
