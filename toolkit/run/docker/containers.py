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
"""The largest number of processes and threads in a container whose ``Box`` sets ``capabilities``."""
_OWNER = "toolkit.owner"
"""The label that names the toolkit process that created a container, as ``HOST:PID``."""


@dataclass(frozen=True, slots=True)
class Box:
    """The specification of a temporary container.

    The container sees only the host files that ``binds`` lists. ``binds`` maps each host path to its path in
    the container.

    - ``nested`` permits a container runtime, such as Apptainer, to run inside the container. The runtime may
      use user namespaces, mounts and FUSE.
    - ``timeout`` is in seconds, ``memory`` in bytes.
    - ``user`` is the user that runs the command; empty text means the image's default user.
    - ``init`` starts Docker's init process as PID 1. The init process reaps orphans and forwards signals to
      the command. Docker adds the program of the init process as a file to the container.
    - ``network`` is ``none`` (no network) or ``host`` (the network of the engine's machine).
    - ``volumes_from`` names other containers. Docker also mounts their volumes in this container.
    - ``root_archive`` is a tar that toolkit unpacks at the container's root before the command starts.
    - ``capabilities`` are the command's only Linux capabilities; ``None`` means Docker's default.
    - ``output_file`` is a file that toolkit copies out of the container if the command succeeds.
    - ``scratch`` is the size in bytes of a ``/tmp`` in memory (tmpfs); with 0, ``/tmp`` is not in memory.
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
    """The result of a container's command.

    ``status`` is the exit status. ``lines`` has the lines of standard output and of standard error.
    ``timed_out`` says whether toolkit killed the container at the time limit.
    """

    status: int
    lines: tuple[str, ...]
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 0 and not self.timed_out


def run_once(
    client: "DockerClient", box: Box, words: Sequence[str], on_line: OnLine = lambda _: None
) -> RunResult:
    """Run the command ``words`` in a new container, and pass each line of its output to ``on_line``.

    ``box`` specifies the container. toolkit removes the container afterwards, even if the command fails.

    Raises:
        Missing: if the image lacks the program, or the engine stops answering.
        CheckFailed: if ``box.output_file`` is not a regular file, or too large.
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
    action: str,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[str]:
    """Create a container of ``image`` without starting it, yield its name, and remove it afterwards.

    ``words`` is the container's command. ``action`` completes the error message "... while toolkit was", for
    example ``running sh``. toolkit itself chooses the container's name. toolkit can therefore remove the
    container even if the user interrupts toolkit before the engine answers.
    """
    name = f"toolkit-{uuid.uuid4().hex[:12]}"
    labels = {"toolkit": "run", _OWNER: f"{host()}:{os.getpid()}", **clone.labels()}
    try:
        with delay_signals(), translate_errors(action):
            client.api.create_container(
                image, list(words), entrypoint=[], name=name, labels=labels, **settings
            )
        yield name
    finally:
        # Ignore errors, because the container may be missing, or the Docker engine may have stopped.
        with contextlib.suppress(Exception):
            client.api.remove_container(name, force=True, v=True)


def remove_stale(client: "DockerClient") -> None:
    """Remove each container that a toolkit process on this machine created, if the process has exited without
    removing the container.
    """
    with translate_errors("looking for containers of toolkit processes that have exited"):
        listed = client.api.containers(all=True, filters={"label": _OWNER})
    for container in listed:
        place, _, pid = container["Labels"][_OWNER].rpartition(":")
        if place == host() and not is_running(int(pid)):
            with contextlib.suppress(Exception):  # another command may have removed the container first
                client.api.remove_container(container["Id"], force=True, v=True)


@contextlib.contextmanager
def mount_image_folder(client: "DockerClient", image: str, folder: str) -> Iterator[str]:
    """Create a container with a volume, into which Docker copies ``folder`` from the image. Yield the
    container's name, so that another container can mount the volume (``Box.volumes_from``).

    toolkit does not start the container. After the ``with`` block, toolkit removes the container and the
    volume.
    """
    with create_container(
        client, image, ["true"], f"copying {folder} of the image {image} to a volume", {"volumes": [folder]}
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
    settings = client.api.create_host_config(
        binds=binds,
        network_mode=box.network,
        init=box.init,
        volumes_from=list(box.volumes_from),
        mem_limit=box.memory,
        memswap_limit=box.memory,
        # Override Docker's default options of a tmpfs: noexec, nosuid and nodev.
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
    # Apptainer needs no additional capabilities, because it mounts file systems in its own user namespaces.
    # Docker's seccomp profile forbids user namespaces, so disable the profile.
    return {
        "security_opt": ["seccomp=unconfined", "apparmor=unconfined"],
        "devices": ["/dev/fuse:/dev/fuse:rwm"] if Path("/dev/fuse").exists() else [],
    }


def _end(container: "Container", expiry: threading.Event) -> None:
    # Set the event first, because run_once() may check the event before kill() returns.
    expiry.set()
    with contextlib.suppress(Exception):
        container.kill()
