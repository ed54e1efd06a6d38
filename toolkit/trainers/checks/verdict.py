"""Derive the failures and the warnings of the preflight from the facts that all ranks read. Each failure
stops the job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.trainers.checks.node import Facts
from toolkit.trainers.checks.wanted import Requirements
from toolkit.trainers.words import format_bytes

_SKEW_TO_TELL = 1.0
"""The difference between the clocks of two nodes, in seconds, above which the preflight warns. For example,
`make` compares the times of files. With clocks that differ, `make` may skip files that it should rebuild.
"""

_SLOW = 0.2
"""If the measured network speed is below this fraction of the expected speed, the preflight warns. A low
speed can mean that the ranks use the wrong network interface, or that a link is broken.
"""

_ONE_STREAM_GBIT = 4.0
"""The speed in Gbit/s that one TCP stream from Python reaches on any machine.

If Python measures the network speed over TCP, the preflight warns only about speeds below this value. At a
higher speed, Python may be slower than the network.
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


def judge(facts: Sequence[Facts], wanted: Requirements, *, tcp: bool = False) -> PreflightVerdict:
    """Derive the preflight's verdict from the facts of all ranks. ``tcp`` is true if Python measured the
    network speed over TCP.
    """
    hosts = list(dict.fromkeys(one.host for one in facts))
    speeds = [one.gbit for one in facts if one.gbit is not None]
    failures = [*_nodes(hosts, wanted), *_gpus(facts, wanted), *_space(facts, wanted)]
    failures += [*_clocks(facts, wanted.max_skew), *_images(facts, wanted)]
    late = [] if failures else [*_clocks(facts, _SKEW_TO_TELL)]
    warnings = (*late, *_speeds(facts, wanted, tcp))
    return PreflightVerdict(tuple(failures), warnings, len(hosts), min(speeds, default=None))


def _nodes(hosts: Sequence[str], wanted: Requirements) -> Iterator[str]:
    if wanted.nodes is not None and len(hosts) != wanted.nodes:
        names = ", ".join(hosts[:5]) + ", …" * (len(hosts) > 5)
        yield (
            f"the ranks run on {len(hosts)} node{'s' * (len(hosts) > 1)} ({names}), but the job has "
            f"{wanted.nodes}"
        )


def _gpus(facts: Sequence[Facts], wanted: Requirements) -> Iterator[str]:
    if wanted.gpus_per_node is None:
        return
    by_host: dict[str, set[int]] = {}
    for one in facts:
        by_host.setdefault(one.host, set()).update(one.gpus)
    for one in facts:
        seen = len(by_host[one.host])
        if one.first and seen < wanted.gpus_per_node:
            have = f"{seen} GPU{'s' * (seen != 1)}" if seen else "no GPU"
            asked = f"the job has {wanted.gpus_per_node} on each node"
            yield f"{_who(one)}: {have} can be opened on this node; {asked}"


def _space(facts: Sequence[Facts], wanted: Requirements) -> Iterator[str]:
    for one in facts:
        places = [("TMPDIR", one.tmp, wanted.min_free_tmp)]
        if wanted.output:
            places.insert(0, (str(wanted.output), one.output, wanted.min_free))
        for place, free, least in places if one.first else ():
            if isinstance(free, str):
                yield f"{_who(one)}: {place} cannot be used: {free}"
            elif free < least:
                yield (
                    f"{_who(one)}: {place} has {format_bytes(free)} free; the job needs {format_bytes(least)}"
                )


def _clocks(facts: Sequence[Facts], most: float) -> Iterator[str]:
    for one in facts:
        if one.first and abs(one.ahead) > most:
            which = "ahead of" if one.ahead > 0 else "behind"
            yield f"{_who(one)}: the clock is {abs(one.ahead):.1f} s {which} the clock of {facts[0].host}"


def _images(facts: Sequence[Facts], wanted: Requirements) -> Iterator[str]:
    for one in facts:
        if not one.first:
            continue
        if one.image.startswith("!"):
            yield f"{_who(one)}: {wanted.image} cannot be read: {one.image[1:]}"
        elif one.image != facts[0].image and not facts[0].image.startswith("!"):
            yield f"{_who(one)}: {wanted.image} differs from the image on {facts[0].host}"


def _speeds(facts: Sequence[Facts], wanted: Requirements, tcp: bool) -> Iterator[str]:
    if wanted.fabric_gbit is None:
        return
    least = _SLOW * wanted.fabric_gbit
    for one in facts:
        if one.gbit is not None and one.gbit < (min(least, _ONE_STREAM_GBIT) if tcp else least):
            yield (
                f"{_who(one)}: receives only {one.gbit:.2g} Gbit/s from another node; "
                f"the expected speed is {wanted.fabric_gbit:g} Gbit/s"
            )


def _who(one: Facts) -> str:
    return f"rank {one.rank} on {one.host}"
