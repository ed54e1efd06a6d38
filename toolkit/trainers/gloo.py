"""Start Horovod ranks without MPI: ``python -m toolkit.trainers.gloo -- COMMAND``, once for each rank.

``srun --mpi=none`` starts this program as every task of a job step. Task 0 opens an HTTP store (a key-value
store like ``horovod/runner/http/http_server.py``), in which Horovod ranks look up each other's addresses. The
other tasks look for the HTTP store on the job step's first node, at ports that all tasks compute from the IDs
of the job and the job step. The HTTP store's answers name its job step, so a task never joins the HTTP store
of another job. When all tasks have joined, each task gets Horovod's environment variables and runs COMMAND.

A task's request to join contains an HMAC (keyed hash), which proves that the task knows the job's secret.
Horovod's own client cannot send an HMAC, so the URL path of each of its requests begins with a secret part.
Only tasks that know the job's secret can compute the secret part.

This file needs only Python 3.8 and :mod:`toolkit.trainers.rendezvous`. For images without toolkit, the job
script contains ``gloo`` and ``rendezvous`` as one program. ``gloo`` reads the environment variables
``HOROVOD_GLOO_IFACE``, ``HOROVOD_GLOO_TIMEOUT_SECONDS`` and ``HOROVOD_START_TIMEOUT`` (seconds within which
all ranks must join). Exit status: the command's status; 1 if ranks do not find each other; 2 for wrong
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

from toolkit.trainers.rendezvous import (
    NODE_NAME,
    RendezvousFault,
    Task,
    addresses_of,
    first_node,
    interface_of,
    interfaces,
    listening_address,
    places,
    ports_of,
    proof,
    proves,
    secret_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# All ranks must join within _SECONDS. The HTTP store must answer a request within _ANSWER_SECONDS.
# After _GONE_SECONDS without an answer, a rank treats the HTTP store as closed.
# Ranks other than 0 delay their error messages by _TIME_TO_SPEAK seconds, so that rank 0 reports first.
_SECONDS, _ANSWER_SECONDS, _GONE_SECONDS, _TIME_TO_SPEAK = 240, 5.0, 15.0, 3.0

_PEER_SECONDS = "300"  # Gloo's default of 30 s is too short: ranks load TensorFlow at different speeds.
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
    # Leave out empty variables. Without HOROVOD_GLOO_IFACE, Gloo uses the address to which this node's host
    # name resolves.
    return {name: value for name, value in variables.items() if value}


def read_task(environment: Mapping[str, str]) -> Task:
    """Return this process's ``Task``. Raise ``RendezvousFault`` if a Slurm variable is missing or wrong."""
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
        """Bind the server's socket without looking up this host's name, which may take a minute."""
        socketserver.TCPServer.server_bind(self)

    def service_actions(self) -> None:
        """Exit when the parent process exits. The parent process is task 0 and executes rank 0's command."""
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
                # Answer rank 0 last. The HTTP store closes when rank 0's command exits, so the other ranks
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
    """Handles the HTTP requests of Horovod's Gloo client and of :func:`join`."""

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
        """Return the scope and key in a request's URL path, or ``None`` if the path lacks the secret part."""
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
    """Run the HTTP store in a child process, so that this process can execute the user's command."""
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
    """Wait until all ranks have joined. Return this rank's Horovod variables, this rank's IP address, and the
    HTTP store's address and port.

    ``caller`` is the address of the node where srun was called. In a batch job, ``caller`` is usually the
    address of the first node, so tasks reach the HTTP store even if they cannot look up the node's name.
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
    """Return rank 0's possible addresses, and the error text to use if no HTTP store answers there."""
    if task.host == task.first:
        bound = listening_address(task.first, caller, alone=False)
        return ["127.0.0.1", *([bound] if bound else [])], "the process of rank 0 has exited"
    known, found = addresses_of(task.first), [caller] if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", caller) else []
    if not known:
        return found, f"this node finds no IPv4 address for the name {task.first}"
    found = list(dict.fromkeys([*known, *found]))
    return found, f"no rank of this step answers at {', '.join(found)}; a firewall may block the port"


def _hello(place: tuple[str, int], task: Task, secret: bytes) -> tuple[dict[str, Any], str]:
    """Send a request to join to the HTTP store at ``place``. Return the store's answer and this task's
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
            f"{name} {what}; start the ranks with srun --mpi=none, and keep Slurm's environment variables"
        )
    return int(value)


def _become(command: list[str]) -> int:
    # Python ignores SIGPIPE, and the executed command would inherit this setting. Restore the default.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the user's command
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
