"""Run one command in a temporary container of the Docker engine."""

import contextlib
import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from toolkit.errors import Missing
from toolkit.run import clone
from toolkit.run.command import OnLine
from toolkit.run.docker.copy_out import CopyOut, copy_out
from toolkit.run.docker.engine_errors import translate_errors
from toolkit.run.interrupts import delay_signals
from toolkit.run.lines import Lines
from toolkit.run.owner import host, is_running

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

_LIMIT = 2 << 30
_PROCESSES = 4096
"""The largest number of processes and threads in a container with limited capabilities."""
_OWNER = "toolkit.owner"
"""The label with the owner of a container: ``HOST:PID`` of the toolkit process."""


@dataclass(frozen=True, slots=True)
class Box:
    """The specification of a temporary container.

    The container sees only the host files that ``binds`` lists. ``binds`` maps each host path to its path in
    the container.

    - ``nested`` permits a container runtime to run in the container: namespaces, mounts and FUSE.
    - ``timeout`` is in seconds, ``memory`` in bytes.
    - ``user`` is the user of the command; empty text means the image's default user.
    - ``init`` adds a process with PID 1 that reaps orphans; its program is visible in the container.
    - ``network`` is ``none`` or ``host``.
    - ``volumes_from`` lists containers whose volumes this container shares.
    - ``root_archive`` is a tar that toolkit unpacks at the container's root.
    - ``capabilities`` are the command's only Linux capabilities; ``None`` means Docker's default.
    - ``output_file`` is a file that toolkit copies out of the container if the command succeeds.
    - ``scratch`` is the size in bytes of an in-memory ``/tmp``; with 0, ``/tmp`` is not in memory.
    """

    image: str
    binds: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    memory: int = _LIMIT
    timeout: float = 600.0
    nested: bool = False
    user: str = ""
    init: bool = True
    volumes_from: tuple[str, ...] = ()
    root_archive: bytes | Iterable[bytes] = b""
    network: str = "none"
    capabilities: tuple[str, ...] | None = None
    output_file: CopyOut | None = None
    scratch: int = 0


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a container's command. ``lines`` has the lines of standard output and standard error."""

    status: int
    lines: tuple[str, ...]
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 0 and not self.timed_out


def run_once(
    client: "DockerClient", box: Box, words: Sequence[str], on_line: OnLine = lambda _: None
) -> RunResult:
    """Run a command in a new container, and remove the container even after a failure.

    Raises:
        Missing: if the image lacks the program, or the engine stops answering.
        CheckFailed: if the output file is not a regular file, or too large.
    """
    what = f"running {words[0]} in {box.image}"
    with (
        translate_errors(what),
        create_container(client, box.image, words, what, _settings(client, box)) as name,
    ):
        container = client.containers.get(name)
        expired = threading.Event()
        timer = threading.Timer(box.timeout, _end, [container, expired])
        timer.daemon = True
        try:
            if box.root_archive:
                container.put_archive("/", box.root_archive)
            _start(container, words[0], box.image)
            timer.start()
            lines = _collect(container, on_line)
            status = int(container.wait()["StatusCode"])
            ran = RunResult(status, tuple(lines), timed_out=expired.is_set())
            if box.output_file and ran.ok:
                copy_out(container, box.output_file)
            return ran
        finally:
            timer.cancel()


@contextlib.contextmanager
def create_container(
    client: "DockerClient",
    image: str,
    words: Sequence[str],
    doing: str,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[str]:
    """Create a container of ``image`` without starting it, yield its name, and remove it afterwards.

    ``doing`` is the part of an error message that says what toolkit was doing, for example ``running sh``.
    toolkit chooses the container's name, so toolkit can remove the container even if an interrupt comes
    before the engine's answer.
    """
    name = f"toolkit-{uuid.uuid4().hex[:12]}"
    labels = {"toolkit": "run", _OWNER: f"{host()}:{os.getpid()}", **clone.labels()}
    try:
        with delay_signals(), translate_errors(doing):
            client.api.create_container(
                image, list(words), entrypoint=[], name=name, labels=labels, **settings
            )
        yield name
    finally:
        # Ignore errors, because the container may be missing, or the Docker engine may have stopped.
        with contextlib.suppress(Exception):
            client.api.remove_container(name, force=True, v=True)


def remove_stale(client: "DockerClient") -> None:
    """Remove the containers of toolkit processes that ran on this machine and have exited."""
    with translate_errors("looking for containers of a killed command"):
        listed = client.api.containers(all=True, filters={"label": _OWNER})
    for container in listed:
        place, _, pid = container["Labels"][_OWNER].rpartition(":")
        if place == host() and not is_running(int(pid)):
            with contextlib.suppress(Exception):  # another command may have removed the container first
                client.api.remove_container(container["Id"], force=True, v=True)


@contextlib.contextmanager
def mount_image_folder(client: "DockerClient", image: str, folder: str) -> Iterator[str]:
    """Create a container whose volume has the contents of ``folder`` in the image, but do not start the
    container. Yield the container's name, and remove container and volume afterwards.
    """
    with create_container(
        client, image, ["true"], f"taking {folder} from {image}", {"volumes": [folder]}
    ) as name:
        yield name


def _start(container: "Container", program: str, image: str) -> None:
    import docker

    try:
        container.start()
    except docker.errors.APIError as error:
        if "executable file not found" in str(error) or "no such file" in str(error):
            raise Missing(f"{program} is not in the image {image}") from error
        raise


def _collect(container: "Container", on_line: OnLine) -> list[str]:
    lines: list[str] = []

    def take(line: str) -> None:
        lines.append(line)
        on_line(line)

    cut = Lines(take)
    for chunk in container.logs(stream=True, follow=True):
        cut.take(chunk)
    cut.end()
    return lines


def _settings(client: "DockerClient", box: Box) -> dict[str, Any]:
    binds = [f"{outside}:{inside}" for outside, inside in box.binds.items()]
    # With ``init``, Docker adds a process that reaps orphans and forwards signals to the command.
    settings = client.api.create_host_config(
        binds=binds,
        network_mode=box.network,
        init=box.init,
        volumes_from=list(box.volumes_from),
        mem_limit=box.memory,
        memswap_limit=box.memory,
        # Without exec, suid and dev, Docker permits neither programs nor device nodes in /tmp.
        tmpfs={"/tmp": f"exec,suid,dev,size={box.scratch}"} if box.scratch else None,  # noqa: S108 - /tmp of the container
        **_rights(box),
    )
    if box.nested:
        # The SDK lacks the docker command's option systempaths=unconfined; empty lists have the same effect.
        settings |= {"MaskedPaths": [], "ReadonlyPaths": []}
    return {"environment": dict(box.env), "user": box.user or None, "host_config": settings}


def _rights(box: Box) -> dict[str, Any]:
    if box.capabilities is not None:
        return {
            "cap_drop": ["ALL"],
            "cap_add": list(box.capabilities),
            "security_opt": ["no-new-privileges"],
            "pids_limit": _PROCESSES,
        }
    if not box.nested:
        return {}
    # Docker's default capabilities suffice, because Apptainer mounts in user namespaces (see nodes.py).
    return {
        "security_opt": ["seccomp=unconfined", "apparmor=unconfined"],
        "devices": ["/dev/fuse:/dev/fuse:rwm"] if Path("/dev/fuse").exists() else [],
    }


def _end(container: "Container", expired: threading.Event) -> None:
    # Set the event before kill(), because another thread may read the exit status before kill() returns.
    expired.set()
    with contextlib.suppress(Exception):
        container.kill()
