"""Find and authenticate the other ranks of a job without MPI: ports, addresses, and the job's secret.

Each run of a job script writes a secret to a file in the job's folder. Only the job's user can read the file
with the secret. Ranks accept connections only from processes that know the secret.

This module must run on Python 3.8 without other packages, because a job script copies the module into images
without toolkit.
"""

from __future__ import annotations

import array
import fcntl
import hashlib
import hmac
import os
import re
import socket
import stat
import struct
import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

JOB_DIR = "TOOLKIT_JOB_DIR"
SECRET = ".secret"  # noqa: S105 - the name of a file in the job's folder
_LEAST = 32  # minimum number of bytes in a secret
_WAIT_SECONDS = 60.0  # time until NFS shows a new file (nfs(5), acregmax)

_FIRST_PORT, _PORTS = 16384, 16384  # below Linux's ip_local_port_range
_SIOCGIFCONF, _ENTRY = 0x8912, 40  # netdevice(7); the size of struct ifreq on 64-bit systems
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


class RendezvousFault(Exception):
    """The ranks cannot find each other. The message is one sentence for the user."""


class Task(NamedTuple):
    """One task of a Slurm job step, on the node ``host``. ``step`` identifies this run of the job step.

    ``size`` is the number of tasks, ``local`` is the task's number on its node, and ``first`` is the node of
    task 0.
    """

    step: str
    rank: int
    size: int
    local: int
    host: str
    first: str


def secret_of(environment: Mapping[str, str], run: str, *, first: bool, alone: bool) -> bytes:
    """Return the job's secret, with which ranks recognise each other. By default, the job script has written
    the secret to a file in the job's folder.

    Job scripts of older toolkit releases do not write a secret. If the job script wrote no secret, rank 0
    (``first`` is true) writes a secret to a file, and the other ranks wait for this file. ``run`` is the name
    of this run of the job, which determines the file's name. ``alone`` is true if all ranks are on one node.
    If all ranks are on one node and the job has no folder, rank 0 writes the secret to the folder for
    temporary files.

    Raises:
        RendezvousFault: if other users may read or replace the secret, if ranks on several nodes have no
            common folder, or if rank 0 does not write the secret within 60 seconds.
    """
    folder = environment.get(JOB_DIR, "")
    if not folder and not alone:
        raise RendezvousFault(
            "ranks on several nodes need a shared folder for the secret with which they recognise each "
            f"other; set {JOB_DIR} to a folder that you own, on a file system that all nodes share"
        )
    given = f"{folder}/{SECRET}"
    if folder and os.path.lexists(given):
        return _read_secret(given)
    name = f"{SECRET}-{os.getuid()}-{hashlib.sha256(run.encode()).hexdigest()[:16]}"
    made = f"{folder or tempfile.gettempdir()}/{name}"
    if first and not os.path.lexists(made):
        _make_secret(made)
    deadline = time.monotonic() + _WAIT_SECONDS
    while not os.path.lexists(made):
        if time.monotonic() > deadline:
            raise RendezvousFault(
                f"rank 0 did not write the file {made} within {_WAIT_SECONDS:g} s; check that all nodes "
                "share the folder of this file"
            )
        time.sleep(0.05)
    return _read_secret(made)


def places(tasks: Iterable[Task]) -> dict[int, dict[str, str]]:
    """Return Horovod's environment variables for each rank, such as HOROVOD_RANK (the rank's number among
    all ranks) and HOROVOD_LOCAL_RANK (the rank's number on its node).

    ``horovodrun`` sets these environment variables, too. The nodes may have different numbers of ranks, and
    the ranks of a node need not have consecutive numbers.
    """
    by_host: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda t: t.rank):
        by_host.setdefault(task.host, []).append(task)
    size = sum(map(len, by_host.values()))
    across: dict[int, int] = {}
    found = {}
    for host, members in by_host.items():
        for local, task in enumerate(sorted(members, key=lambda t: (t.local, t.rank))):
            numbers = {"RANK": task.rank, "SIZE": size, "LOCAL_RANK": local, "LOCAL_SIZE": len(members)}
            numbers["CROSS_RANK"] = across.setdefault(local, 0)
            across[local] += 1
            found[task.rank] = {f"HOROVOD_{name}": str(number) for name, number in numbers.items()}
            found[task.rank]["HOROVOD_HOSTNAME"] = host
    for place in found.values():
        place["HOROVOD_CROSS_SIZE"] = str(across[int(place["HOROVOD_LOCAL_RANK"])])
    return found


def proof(secret: bytes, *parts: bytes) -> str:
    """Return an HMAC-SHA256 (RFC 2104) over ``parts`` with the secret as key."""
    message = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    return hmac.new(secret, message, hashlib.sha256).hexdigest()


def proves(value: object, secret: bytes, *parts: bytes) -> bool:
    """Return whether ``value`` is the correct HMAC over ``parts``. The comparison takes constant time, so its
    duration reveals nothing about the HMAC.
    """
    said = value.encode("utf-8", "replace") if isinstance(value, str) else b""
    return hmac.compare_digest(said, proof(secret, *parts).encode())


def listening_address(host: str, caller: str, *, alone: bool) -> str:
    """Return the address at which rank 0 listens on this node, or an empty string if rank 0 must listen at
    all addresses.

    If ``alone`` is true, all ranks are on this node, and the address is 127.0.0.1. ``host`` is the name of
    this node. ``caller`` is the address of the node on which srun was called, which may be this node.
    """
    if alone:
        return "127.0.0.1"
    own = {address for _, address in interfaces() if not address.startswith("127.")}
    return next((address for address in (caller, *addresses_of(host)) if address in own), "")


def addresses_of(name: str) -> list[str]:
    """Return the IPv4 addresses of a host name. The list is empty if this node cannot resolve the name."""
    try:
        known = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in known))


def _read_secret(path: str) -> bytes:
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(number, "rb") as file:
            found = os.fstat(number)
            secret = file.read(1024).strip()
    except OSError as error:
        raise RendezvousFault(f"{path}: {error.strerror or error}") from None
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077 or len(secret) < _LEAST:
        raise RendezvousFault(
            f"{path}: unsafe secret: another user owns this file, other users can read or change it, or it "
            f"is shorter than {_LEAST} bytes; delete the file and start the job again"
        )
    return secret


def _make_secret(path: str) -> None:
    part = f"{path}.{os.getpid()}.part"
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(os.urandom(_LEAST).hex().encode())
        os.rename(part, path)  # noqa: PTH104 - importing pathlib is slow
    except OSError as error:
        raise RendezvousFault(f"{path}: {error.strerror or error}") from None


def first_node(nodes: str) -> str:
    """Return the first node of a node list in Slurm's notation. Raise ``RendezvousFault`` if ``nodes`` is not
    a node list.

    >>> first_node("rack[01-02]n[3,5],gpu7")
    'rack01n3'
    """
    found = re.match(r"(?:[^,\[\]]|\[[^\[\]]*\])+(?=,|\Z)", nodes)
    name = re.sub(r"\[(\w+)[^\]]*\]", r"\1", found[0]) if found else ""
    if not NODE_NAME.fullmatch(name):
        raise RendezvousFault(
            f"SLURM_STEP_NODELIST or SLURM_JOB_NODELIST contains {nodes!r}, which is not a list of nodes"
        )
    return name


def ports_of(step: str) -> list[int]:
    """Return the ports at which rank 0 of a job step may listen, with the most likely port first. All ranks
    compute the same ports.
    """
    numbers = struct.unpack(">16H", hashlib.sha256(step.encode()).digest())
    return list(dict.fromkeys(_FIRST_PORT + number % _PORTS for number in numbers))


def interfaces() -> list[tuple[str, str]]:
    """Return the names and IPv4 addresses of this machine's network interfaces, in the kernel's order."""
    buffer = array.array("B", bytes(_ENTRY * 512))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        told = fcntl.ioctl(asked, _SIOCGIFCONF, struct.pack("iL", len(buffer), buffer.buffer_info()[0]))
    size = struct.unpack("iL", told)[0]
    entries = [buffer[at : at + _ENTRY].tobytes() for at in range(0, size, _ENTRY)]
    return [(entry[:16].split(b"\0")[0].decode(), socket.inet_ntoa(entry[20:24])) for entry in entries]


def interface_of(address: str, interface_addresses: Iterable[tuple[str, str]]) -> str:
    """Return the name of the network interface whose first address is ``address``, or an empty string if
    no interface has this first address. Gloo uses only the first address of a network interface.
    """
    first: dict[str, str] = {}
    for name, own in interface_addresses:
        first.setdefault(name, own)
    return next((name for name, own in first.items() if own == address), "")
