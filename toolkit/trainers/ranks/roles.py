"""Give each rank of a job with parameter servers a role: coordinator, server or worker."""

from dataclasses import dataclass
from typing import Literal

from toolkit.trainers.trouble import Trouble

Kind = Literal["chief", "ps", "worker"]


@dataclass(frozen=True, slots=True)
class Role:
    """TensorFlow's name for a rank's role, and the rank's number among the ranks with this role. TensorFlow
    calls the coordinator ``chief``.
    """

    kind: Kind
    number: int


def roles(ranks: int, servers: int = 0) -> list[Role]:
    """Return the role of each rank: first a coordinator, then the servers, then the workers.

    ``servers`` is the number of parameter servers. By default (``servers=0``), a quarter of the ranks are
    parameter servers, so a job has about three workers for each server.

    Raises:
        Trouble: if the job has too few ranks for a coordinator, the servers and at least one worker.

    >>> [f"{role.kind}{role.number}" for role in roles(4)]
    ['chief0', 'ps0', 'worker0', 'worker1']
    """
    if ranks < 3:
        raise Trouble(
            "--strategy ps needs at least 3 ranks (a coordinator, a server and a worker); the job has "
            f"{ranks}"
        )
    servers = servers or max(1, ranks // 4)
    if servers > ranks - 2:
        raise Trouble(
            f"--servers {servers}: too many servers for {ranks} ranks, because one rank is the coordinator, "
            f"and at least one rank must be a worker; use at most {ranks - 2}"
        )
    workers = ranks - 1 - servers
    return [
        Role("chief", 0),
        *(Role("ps", number) for number in range(servers)),
        *(Role("worker", number) for number in range(workers)),
    ]


def cluster(roles: list[Role], addresses: list[str]) -> dict[str, list[str]]:
    """Return TensorFlow's cluster specification, which lists the addresses of the ranks with each role.

    ``roles`` has the role of each rank, and ``addresses`` has the address of each rank, in the same order.
    """
    found: dict[str, list[str]] = {}
    for role, address in zip(roles, addresses, strict=True):
        found.setdefault(role.kind, []).append(address)
    return found
