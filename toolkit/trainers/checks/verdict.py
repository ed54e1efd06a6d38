"""Derive the failures and the warnings of the preflight from the facts that all ranks read. Each failure
stops the job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.trainers.checks.node import Facts
from toolkit.trainers.checks.wanted import Requirements
from toolkit.trainers.words import format_bytes

_SKEW_TO_TELL = 1.0
"""The difference between the clocks of two nodes, in seconds, above which the preflight warns.

Wrong clocks disturb programs that compare the times of files. For example, `make` may skip files that it
should rebuild.
"""

_SLOW = 0.2
"""If the measured network speed is below this fraction of the expected speed, the preflight warns. A low
speed can mean that the ranks use the wrong network interface, or that a link is broken.
"""

_ONE_STREAM_GBIT = 4.0
"""The speed in Gbit/s that one TCP stream from Python reaches on any machine.

If Python measures the network speed over TCP, the preflight warns only about speeds below this value. A
measured speed above this value may be the limit of Python instead of the limit of the network.
"""


@dataclass(frozen=True)
class PreflightVerdict:
    """The result of the preflight. ``failures`` stop the job; ``warnings`` do not. ``nodes`` is the number of
    nodes. ``slowest`` is the lowest measured network speed of a node in Gbit/s, or ``None`` if no speed was
    measured.
    """

    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    nodes: int = 0
    slowest: float | None = None


def judge(facts: Sequence[Facts], requirements: Requirements, *, tcp: bool = False) -> PreflightVerdict:
    """Derive the preflight's verdict from the facts of all ranks. ``tcp`` is true if Python measured the
    network speed over TCP.
    """
    hosts = list(dict.fromkeys(one.host for one in facts))
    speeds = [one.gbit for one in facts if one.gbit is not None]
    failures = [*_nodes(hosts, requirements), *_gpus(facts, requirements), *_space(facts, requirements)]
    failures += [*_clocks(facts, requirements.max_skew), *_images(facts, requirements)]
    late = [] if failures else [*_clocks(facts, _SKEW_TO_TELL)]
    warnings = (*late, *_speeds(facts, requirements, tcp))
    return PreflightVerdict(tuple(failures), warnings, len(hosts), min(speeds, default=None))


def _nodes(hosts: Sequence[str], requirements: Requirements) -> Iterator[str]:
    if requirements.nodes is not None and len(hosts) != requirements.nodes:
        names = ", ".join(hosts[:5]) + ", …" * (len(hosts) > 5)
        yield (
            f"the ranks run on {len(hosts)} node{'s' * (len(hosts) > 1)} ({names}), but the job has "
            f"{requirements.nodes} node{'s' * (requirements.nodes > 1)}"
        )


def _gpus(facts: Sequence[Facts], requirements: Requirements) -> Iterator[str]:
    if requirements.gpus_per_node is None:
        return
    by_host: dict[str, set[int]] = {}
    for one in facts:
        by_host.setdefault(one.host, set()).update(one.gpus)
    for one in facts:
        seen = len(by_host[one.host])
        if one.first and seen < requirements.gpus_per_node:
            have = f"{seen} GPU{'s' * (seen != 1)}" if seen else "no GPU"
            asked = f"the job has {requirements.gpus_per_node} on each node"
            yield f"{_who(one)}: {have} can be opened on this node; {asked}"


def _space(facts: Sequence[Facts], requirements: Requirements) -> Iterator[str]:
    for one in facts:
        places = [("TMPDIR", one.tmp, requirements.min_free_tmp)]
        if requirements.output:
            places.insert(0, (str(requirements.output), one.output, requirements.min_free))
        for place, free, least in places if one.first else ():
            if isinstance(free, str):
                yield f"{_who(one)}: {place} cannot be used: {free}"
            elif free < least:
                yield (
                    f"{_who(one)}: {place} has {format_bytes(free)} free; the job needs {format_bytes(least)}"
                )


def _clocks(facts: Sequence[Facts], limit: float) -> Iterator[str]:
    for one in facts:
        if one.first and abs(one.ahead) > limit:
            which = "ahead of" if one.ahead > 0 else "behind"
            yield f"{_who(one)}: the clock is {abs(one.ahead):.1f} s {which} the clock of {facts[0].host}"


def _images(facts: Sequence[Facts], requirements: Requirements) -> Iterator[str]:
    for one in facts:
        if not one.first:
            continue
        if one.image.startswith("!"):
            yield f"{_who(one)}: {requirements.image} cannot be read: {one.image[1:]}"
        elif one.image != facts[0].image and not facts[0].image.startswith("!"):
            yield f"{_who(one)}: {requirements.image} differs from the image on {facts[0].host}"


def _speeds(facts: Sequence[Facts], requirements: Requirements, tcp: bool) -> Iterator[str]:
    if requirements.fabric_gbit is None:
        return
    least = _SLOW * requirements.fabric_gbit
    for one in facts:
        if one.gbit is not None and one.gbit < (min(least, _ONE_STREAM_GBIT) if tcp else least):
            yield (
                f"{_who(one)}: receives only {one.gbit:.2g} Gbit/s from another node; "
                f"the expected speed is {requirements.fabric_gbit:g} Gbit/s"
            )


def _who(facts: Facts) -> str:
    return f"rank {facts.rank} on {facts.host}"
