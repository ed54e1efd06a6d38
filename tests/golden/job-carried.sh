#!/bin/bash
# Made by toolkit. Needs only Slurm, singularity and the image. Submit with: sbatch job.sh
#
# Launch mode gloo: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
#SBATCH --output=output.log
#SBATCH --open-mode=append

set -u
# After sbatch --export=NONE, srun would pass no variable of this shell to its steps, not even PATH (srun(1), --export).
unset SLURM_EXPORT_ENV

# toolkit writes the files of this job to this folder.
job_dir=/work/ada/toolkit/runs/mnist-1
mkdir -p -- "$job_dir" || exit 1
cd -- "$job_dir" || exit 1

# Record the time at which each part of the start begins, for `toolkit bench start`.
rm -f start-times
mark() { echo "$1 ${EPOCHREALTIME:-$(date +%s)}" >> start-times; }
# Record the number of bytes of output that this node wrote, so that a reader on another node can wait for all bytes.
leave_size() { echo "output $(stat -Lc %s "/proc/$$/fd/1" 2> /dev/null)" >> start-times; }
mark script
# Write the exit status to a file, because not every cluster keeps accounting records. Slurm starts a job
# again after a node failure: remove the exit status of the first start.
rm -f exit-code stop-asked
leave_status() {
    local status=$?
    # If a signal ends this shell during a foreground command, $? is the status of the previous command, and `jobs -r`
    # lists the foreground command without an &. A trap for the signal would run only after this command.
    case "$(jobs -r)" in "" | *"&") ;; *) status=143 ;; esac
    rm -f .secret
    leave_size
    echo "$status" > exit-code.part && mv exit-code.part exit-code
}
trap leave_status EXIT

# Ranks that communicate over TCP share this secret, and refuse connections without the secret.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load the module of singularity or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode gloo"

# This program connects the ranks without MPI. The image does not contain the program, so this script writes it.
# shellcheck disable=SC2016
printf '%s' '"""Start Horovod ranks without MPI: ``python -m toolkit.trainers.gloo -- COMMAND``, once for each rank.

``srun --mpi=none`` starts this program as every task of a job step. Task 0 opens an HTTP store (a key-value
store like ``horovod/runner/http/http_server.py``), in which Horovod ranks look up each other'"'"'s addresses. The
other tasks look for the HTTP store on the job step'"'"'s first node, at ports that all tasks compute from the IDs
of the job and the job step. The HTTP store'"'"'s answers name its job step, so a task never joins the HTTP store
of another job. When all tasks have joined, each task gets Horovod'"'"'s environment variables and runs COMMAND.

A task'"'"'s request to join contains an HMAC (keyed hash), which proves that the task knows the job'"'"'s secret.
Horovod'"'"'s own client cannot send an HMAC, so the URL path of each of its requests begins with a secret part.
Only tasks that know the job'"'"'s secret can compute the secret part.

This file needs only Python 3.8 and :mod:`toolkit.trainers.rendezvous`. For images without toolkit, the job
script contains ``gloo`` and ``rendezvous`` as one program. ``gloo`` reads the environment variables
``HOROVOD_GLOO_IFACE``, ``HOROVOD_GLOO_TIMEOUT_SECONDS`` and ``HOROVOD_START_TIMEOUT`` (seconds within which
all ranks must join). Exit status: the command'"'"'s status; 1 if ranks do not find each other; 2 for wrong
arguments; 126 or 127 if the command cannot be started.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import shutil
import signal
import socketserver
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

"""Find and authenticate the other ranks of a job without MPI: ports, addresses, and the job'"'"'s secret.

Each run of a job script writes a secret to a file in the job'"'"'s folder. Only the job'"'"'s user can read the file
with the secret. Ranks accept connections only from processes that know the secret.

This module must run on Python 3.8 without other packages, because a job script copies the module into images
without toolkit.
"""


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
SECRET = ".secret"  # noqa: S105 - the name of a file in the job'"'"'s folder
_LEAST = 32  # minimum number of bytes in a secret
_WAIT_SECONDS = 60.0  # time until NFS shows a new file (nfs(5), acregmax)

_FIRST_PORT, _PORTS = 16384, 16384  # below Linux'"'"'s ip_local_port_range
_SIOCGIFCONF, _ENTRY = 0x8912, 40  # netdevice(7); the size of struct ifreq on 64-bit systems
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


class RendezvousFault(Exception):
    """The ranks cannot find each other. The message is one sentence for the user."""


class Task(NamedTuple):
    """One task of a Slurm job step, on the node ``host``. ``step`` identifies this run of the job step.

    ``size`` is the number of tasks, ``local`` is the task'"'"'s number on its node, and ``first`` is the node of
    task 0.
    """

    step: str
    rank: int
    size: int
    local: int
    host: str
    first: str


def secret_of(environment: Mapping[str, str], run: str, *, first: bool, alone: bool) -> bytes:
    """Return the job'"'"'s secret, with which ranks recognise each other. By default, the job script has written
    the secret to a file in the job'"'"'s folder.

    Job scripts of older toolkit releases do not write a secret. If the job script wrote no secret, rank 0
    (``first`` is true) writes a secret to a file, and the other ranks wait for this file. ``run`` is the name
    of this run of the job, which determines the file'"'"'s name. ``alone`` is true if all ranks are on one node.
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
    """Return Horovod'"'"'s environment variables for each rank, such as HOROVOD_RANK (the rank'"'"'s number among
    all ranks) and HOROVOD_LOCAL_RANK (the rank'"'"'s number on its node).

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
    """Return the first node of a node list in Slurm'"'"'s notation. Raise ``RendezvousFault`` if ``nodes`` is not
    a node list.

    >>> first_node("rack[01-02]n[3,5],gpu7")
    '"'"'rack01n3'"'"'
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
    """Return the names and IPv4 addresses of this machine'"'"'s network interfaces, in the kernel'"'"'s order."""
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# All ranks must join within _SECONDS. The HTTP store must answer a request within _ANSWER_SECONDS.
# After _GONE_SECONDS without an answer, a rank treats the HTTP store as closed.
# Ranks other than 0 delay their error messages by _TIME_TO_SPEAK seconds, so that rank 0 reports first.
_SECONDS, _ANSWER_SECONDS, _GONE_SECONDS, _TIME_TO_SPEAK = 240, 5.0, 15.0, 3.0

_PEER_SECONDS = "300"  # Gloo'"'"'s default of 30 s is too short: ranks load TensorFlow at different speeds.
# The maximum size of a stored value in bytes. Addresses of thousands of ranks need less than a megabyte.
_LARGEST = 1 << 24
_LARGEST_HELLO = 4096
_HELLO, _NONCE, _PROOF = "/toolkit/hello", "X-Toolkit-Nonce", "X-Toolkit-Proof"


def main(words: Sequence[str]) -> int:
    """Join the other ranks, and replace this process with the command. If either fails, return a status."""
    if len(words) < 2 or words[0] != "--":
        return _say("usage: python -m toolkit.trainers.gloo -- COMMAND", 2)
    try:
        os.environ.update(gloo_variables(read_task(os.environ), os.environ))
    except RendezvousFault as trouble:
        if os.environ.get("SLURM_PROCID", "0") != "0":
            time.sleep(_TIME_TO_SPEAK)
        return _say(str(trouble), 1)
    return _become(list(words[1:]))


def gloo_variables(task: Task, environment: Mapping[str, str]) -> dict[str, str]:
    """Join the other ranks, and return the environment variables that Horovod needs.

    Raises ``RendezvousFault`` if the ranks do not find each other.
    """
    seconds = _number(environment, "HOROVOD_START_TIMEOUT", str(_SECONDS))
    ports, caller = ports_of(task.step), environment.get("SLURM_LAUNCH_NODE_IPADDR", "")
    alone = environment.get("SLURM_STEP_NODELIST") == task.first
    secret = secret_of(environment, task.step, first=task.rank == 0, alone=alone)
    if task.rank == 0:
        store = open_store(task, ports, secret, listening_address(task.first, caller, alone=alone))
        ports = [store.server_address[1]]
        serve_beside(store)
    place, own, (address, port) = join(task, ports, caller, seconds, secret)
    variables = {
        **place,
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        # Horovod appends a colon and the port to this value to make a URL (horovod/common/gloo/http_store.h).
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": f"{address}:{port}/{path_of(secret, task.step)}",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_GLOO_TIMEOUT_SECONDS": environment.get("HOROVOD_GLOO_TIMEOUT_SECONDS") or _PEER_SECONDS,
        "HOROVOD_GLOO_IFACE": environment.get("HOROVOD_GLOO_IFACE") or interface_of(own, interfaces()),
    }
    # Leave out empty variables. Without HOROVOD_GLOO_IFACE, Gloo uses the address to which this node'"'"'s host
    # name resolves.
    return {name: value for name, value in variables.items() if value}


def read_task(environment: Mapping[str, str]) -> Task:
    """Return this process'"'"'s ``Task``. Raise ``RendezvousFault`` if a Slurm variable is missing or wrong."""
    rank, size = _number(environment, "SLURM_PROCID"), _number(environment, "SLURM_STEP_NUM_TASKS")
    if rank >= size:
        raise RendezvousFault(f"SLURM_PROCID is {rank}, but {size} tasks have the ranks 0 to {size - 1}")
    job, step = _number(environment, "SLURM_JOB_ID"), _number(environment, "SLURM_STEP_ID")
    cluster, again = (environment.get(f"SLURM_{name}", "") for name in ("CLUSTER_NAME", "RESTART_COUNT"))
    first = first_node(environment.get("SLURM_STEP_NODELIST", ""))
    host = environment.get("SLURMD_NODENAME", "")
    if not NODE_NAME.fullmatch(host):
        raise RendezvousFault(f"SLURMD_NODENAME {host!r} is not a node name")
    if rank == 0 and host != first:
        raise RendezvousFault(f"task 0 runs on {host}, but the other tasks look for it on {first}")
    run = f"{cluster}/{job}.{step}/{again}"
    return Task(run, rank, size, _number(environment, "SLURM_LOCALID"), host, first)


def path_of(secret: bytes, step: str) -> str:
    """Return the secret first part of the URL paths that Horovod requests in job step ``step``."""
    return proof(secret, b"path", step.encode())


class Store(ThreadingHTTPServer):
    """The HTTP store, with values under ``/SECRET/SCOPE/KEY``. Raises ``OSError`` if the port is in use."""

    daemon_threads = True
    request_queue_size = 1024  # All ranks connect to the HTTP store at once.

    def __init__(self, task: Task, port: int, secret: bytes, address: str = "") -> None:
        self.secret, self.path = secret, path_of(secret, task.step)
        self.task, self.owner = task, os.getpid()
        self.lock = threading.Lock()
        self.values: dict[str, dict[str, bytes]] = {}
        self.tasks: dict[int, Task] = {}
        self.told: set[int] = set()
        self.left: dict[str, set[str]] = {}
        self.places: dict[int, dict[str, str]] = {}
        self.reached = ""
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind the server'"'"'s socket without looking up this host'"'"'s name, which may take a minute."""
        socketserver.TCPServer.server_bind(self)

    def service_actions(self) -> None:
        """Exit when the parent process exits. The parent process is task 0 and executes rank 0'"'"'s command."""
        if os.getppid() != self.owner:
            raise SystemExit

    def greet(self, task: Task, address: str) -> dict[str, object]:
        """Return the answer to ``task``: the missing ranks or, if none is missing, ``HOROVOD_*`` values."""
        said: dict[str, object] = {"step": self.task.step}
        if task.step != self.task.step or task.rank not in range(self.task.size):
            return said
        with self.lock:
            known = self.tasks.setdefault(task.rank, task)
            if known != task or task.size != self.task.size:
                return {**said, "trouble": f"two tasks disagree: {known} contradicts {task}"}
            if task.host != self.task.host:
                self.reached = self.reached or address
            absent = [rank for rank in range(self.task.size) if rank not in self.tasks]
            if not absent and task.rank == 0:
                # Answer rank 0 last. The HTTP store closes when rank 0'"'"'s command exits, so the other ranks
                # must have their answers before this command starts.
                absent = [rank for rank in range(1, self.task.size) if rank not in self.told]
            if absent:
                return {**said, "absent": ", ".join(map(str, absent[:8])) + ", …" * (len(absent) > 8)}
            self.told.add(task.rank)
            self.places = self.places or places(self.tasks.values())
            return {**said, "place": self.places[task.rank], "reached": self.reached}

    def leave(self, scope: str, key: str) -> None:
        """Delete a scope (group of keys) when the last rank leaves it. ``key`` names the rank that leaves.
        In Horovod before 0.23, a rank may leave a scope while other ranks still read keys of the scope.
        """
        with self.lock:
            gone = self.left.setdefault(scope, set())
            gone.add(key)
            if gone >= set(self.values.get(scope, ())):
                del self.left[scope]
                self.values.pop(scope, None)


class _Handler(BaseHTTPRequestHandler):
    """Handles the HTTP requests of Horovod'"'"'s Gloo client and of :func:`join`."""

    server: Store
    timeout = 30

    def do_GET(self) -> None:
        if (names := self._names()) is None:
            return self._answer(404)
        scope, key = names
        with self.server.lock:
            value = self.server.values.get(scope, {}).get(key)
        return self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self) -> None:
        length = self.headers.get("Content-Length", "")
        names = self._names()
        hello = self.path == _HELLO
        if not hello and names is None:
            return self._answer(404)
        if not re.fullmatch(r"[0-9]{1,9}", length) or int(length) > (_LARGEST_HELLO if hello else _LARGEST):
            return self._answer(400)
        value = self.rfile.read(int(length))
        if names is None:
            return self._greet(value)
        scope, key = names
        with self.server.lock:
            self.server.values.setdefault(scope, {})[key] = value
        return self._answer(200)

    def do_DELETE(self) -> None:
        if (names := self._names()) is None:
            return self._answer(404)
        self.server.leave(*names)
        return self._answer(200)

    def _greet(self, value: bytes) -> None:
        """Answer a request to join. Reject a request whose HMAC does not prove knowledge of the secret."""
        nonce, secret = self.headers.get(_NONCE, "").encode(), self.server.secret
        if not proves(self.headers.get(_PROOF, ""), secret, b"hello", nonce, value):
            return self._answer(403)
        task = _task(value)
        told = self.server.greet(task, self.connection.getsockname()[0]) if task else {}
        body = json.dumps(told).encode()
        return self._answer(200, body, proof(secret, b"answer", nonce, body))

    def _names(self) -> tuple[str, str] | None:
        """Return the scope and key in a request'"'"'s URL path, or ``None`` if the path lacks the secret part."""
        # Horovod appends the port to HOROVOD_GLOO_RENDEZVOUS_ADDR, which ends in the secret part.
        first, _, rest = self.path.strip("/").partition("/")
        wanted = f"{self.server.path}:{self.server.server_address[1]}"
        if not hmac.compare_digest(first.encode("utf-8", "replace"), wanted.encode()):
            return None
        scope, _, key = rest.partition("/")
        return scope, key

    def _answer(self, status: int, body: bytes = b"", proof: str = "") -> None:
        self.send_response(status)
        if proof:
            self.send_header(_PROOF, proof)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the HTTP store must not print a line for each request."""


def _task(text: bytes) -> Task | None:
    """Return the task that ``text``, the JSON text of a request, describes. Return ``None`` if ``text`` does
    not describe a task.
    """
    try:
        task = Task(**json.loads(text))
    except (ValueError, TypeError):
        return None
    return task if [type(value) for value in task] == [str, int, int, int, str, str] else None


def open_store(task: Task, ports: Sequence[int], secret: bytes, address: str = "") -> Store:
    """Return an HTTP store that listens at the first free port of ``ports``. Raise ``RendezvousFault`` if no
    port is free.
    """
    why = ""
    for port in ports:
        try:
            return Store(task, port, secret, address)
        except OSError as error:
            why = error.strerror or str(error)
    raise RendezvousFault(f"none of these ports can be opened on {task.host}: {ports} ({why})")


def serve_beside(store: Store) -> None:
    """Run the HTTP store in a child process, so that this process can execute the user'"'"'s command."""
    if os.fork():
        return store.server_close()
    try:
        for number in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"):
            signal.signal(getattr(signal, number), signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):  # srun waits until all processes have closed stdin, stdout and stderr.
            os.dup2(nothing, stream)
        store.serve_forever(poll_interval=0.2)
    finally:
        os._exit(0)


def join(
    task: Task, ports: Sequence[int], caller: str, seconds: float, secret: bytes
) -> tuple[dict[str, str], str, tuple[str, int]]:
    """Wait until all ranks have joined. Return this rank'"'"'s Horovod variables, this rank'"'"'s IP address, and the
    HTTP store'"'"'s address and port.

    ``caller`` is the address of the node where srun was called. In a batch job, ``caller`` is usually the
    address of the first node, so tasks reach the HTTP store even if they cannot look up the node'"'"'s name.
    Raises ``RendezvousFault`` if a rank does not join within ``seconds``, or if this task does not find the
    HTTP store.
    """
    begun = heard = time.monotonic()
    limit = seconds + (_TIME_TO_SPEAK if task.rank else 0)
    pause, absent, store, why = 0.02, "", None, ""
    while True:
        hosts, why = ([], "") if store else _hosts(task, caller)
        for place in [store] if store else [(host, port) for port in ports for host in hosts]:
            answer, own = _hello(place, task, secret)
            if "trouble" in answer:
                raise RendezvousFault(answer["trouble"])
            if "place" in answer:
                reached = answer["reached"] if task.host == task.first else ""
                return answer["place"], reached or own, place
            if answer:
                store, absent, heard = place, answer["absent"], time.monotonic()
                break
        now = time.monotonic()
        if store and now - heard > _GONE_SECONDS:
            raise RendezvousFault(f"rank 0 on {task.first} exited while it waited for other ranks")
        if now - begun > limit:
            late = f"rank {absent} did not reach rank 0 on {task.first} within {seconds:g} s"
            lost = f"rank {task.rank} on {task.host} did not find rank 0 within {seconds:g} s: {why}"
            raise RendezvousFault(late if absent else lost)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.5 + task.size / 2000)


def _hosts(task: Task, caller: str) -> tuple[list[str], str]:
    """Return rank 0'"'"'s possible addresses, and the error text to use if no HTTP store answers there."""
    if task.host == task.first:
        bound = listening_address(task.first, caller, alone=False)
        return ["127.0.0.1", *([bound] if bound else [])], "the process of rank 0 has exited"
    known, found = addresses_of(task.first), [caller] if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", caller) else []
    if not known:
        return found, f"this node finds no IPv4 address for the name {task.first}"
    found = list(dict.fromkeys([*known, *found]))
    return found, f"no rank of this step answers at {'"'"', '"'"'.join(found)}; a firewall may block the port"


def _hello(place: tuple[str, int], task: Task, secret: bytes) -> tuple[dict[str, Any], str]:
    """Send a request to join to the HTTP store at ``place``. Return the store'"'"'s answer and this task'"'"'s
    address. The answer is empty if no HTTP store of this job step answers.
    """
    connection = HTTPConnection(*place, timeout=_ANSWER_SECONDS)
    nonce, body = os.urandom(16).hex(), json.dumps(task._asdict()).encode()
    try:
        headers = {_NONCE: nonce, _PROOF: proof(secret, b"hello", nonce.encode(), body)}
        connection.request("PUT", _HELLO, body, headers)
        own = connection.sock.getsockname()[0]
        answer = connection.getresponse()
        content = answer.read(_LARGEST)
        if not proves(answer.getheader(_PROOF), secret, b"answer", nonce.encode(), content):
            return {}, ""
        said = json.loads(content)
    except (OSError, HTTPException, ValueError):
        return {}, ""
    finally:
        connection.close()
    return (said if isinstance(said, dict) and said.get("step") == task.step else {}), own


def _number(environment: Mapping[str, str], name: str, default: str = "") -> int:
    value = environment.get(name) or default
    if not re.fullmatch(r"[0-9]{1,10}", value):
        what = f"is {value!r}" if value else "is not set"
        raise RendezvousFault(
            f"{name} {what}; start the ranks with srun --mpi=none, and keep Slurm'"'"'s environment variables"
        )
    return int(value)


def _become(command: list[str]) -> int:
    # Python ignores SIGPIPE, and the executed command would inherit this setting. Restore the default.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the user'"'"'s command
    except (OSError, ValueError) as error:
        # A missing command raises PermissionError if the user may not read a folder on PATH.
        if isinstance(error, FileNotFoundError) or (
            "/" not in command[0] and shutil.which(command[0]) is None
        ):
            return _say(f"the image has no command {command[0]}", 127)
        return _say(f"{command[0]} cannot be started: {error}", 126)


def _say(sentence: str, code: int) -> int:
    print(f"gloo: {sentence}", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
' > toolkit-gloo.py || exit 1

mark preflight
# Check whether Gloo reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 HOROVOD_CONTROLLER=gloo \
            HOROVOD_CPU_OPERATIONS=gloo \
        python3 /work/ada/toolkit/runs/mnist-1/toolkit-gloo.py -- python \
            -m toolkit.trainers.preflight --tasks "${SLURM_NTASKS:-4}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: Gloo did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

mark ranks
srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 HOROVOD_CONTROLLER=gloo \
        HOROVOD_CPU_OPERATIONS=gloo \
    python3 /work/ada/toolkit/runs/mnist-1/toolkit-gloo.py -- python -m toolkit.trainers.mnist \
        --data /work/ada/toolkit/data/mnist
