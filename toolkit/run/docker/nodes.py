"""Create and remove long-lived containers that simulate machines, with their networks and volumes.

toolkit keeps no list of these containers, networks and volumes. To find or remove them, toolkit searches for
their labels.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.errors import CheckFailed, Missing
from toolkit.run.command import Command, Completed
from toolkit.run.docker.engine import connect
from toolkit.run.docker.engine_errors import translate_errors
from toolkit.run.interrupts import delay_signals

if TYPE_CHECKING:
    from docker import DockerClient

OnOutput = Callable[[bytes, bytes], None]
"""A function that receives new output of a command: bytes of standard output and of standard error."""

_GRACE = "5"
"""The number of seconds between SIGTERM and SIGKILL for a command that exceeds its time limit."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of a container that simulates a machine.

    ``name`` is the container's name in the Docker engine. ``address`` is the container's host name on
    ``network``. ``words`` is the container's command. ``volumes`` maps each volume to its mount point. The
    Docker engine publishes the container's TCP ports ``ports`` on the engine's machine, at the address and
    port in ``published``. If the port in ``published`` is empty, the engine chooses a free port. ``memory``
    and ``shared_memory`` (the size of ``/dev/shm``) are in bytes.
    """

    name: str
    image: str
    address: str
    words: tuple[str, ...]
    labels: Mapping[str, str]
    network: str
    volumes: Mapping[str, str]
    memory: int
    shared_memory: int
    ports: tuple[int, ...] = ()
    published: tuple[str, str] = ("127.0.0.1", "")


class NodeContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container in the Docker engine.

    ``state`` is Docker's word, such as ``running`` or ``exited``. ``ports`` maps each port of the container
    to the port at which the engine publishes it.
    """

    name: str
    state: str
    labels: Mapping[str, str]
    ports: Mapping[int, int]


def configuration(machine: Machine) -> dict[str, Any]:
    """Return the parameters with which the engine's API creates a container.

    The container has Docker's default capabilities, which suffice for Slurm's daemons. Apptainer mounts file
    systems in its own user namespaces. Without CAP_SYS_ADMIN, Docker's seccomp profile forbids user
    namespaces, so toolkit disables the profile. ``apptainer exec --containall`` also mounts a new ``/proc``.
    In a user namespace, the kernel permits a mount of ``/proc`` only if the container's own ``/proc`` has
    neither masked nor read-only paths (``mnt_already_visible`` in fs/namespace.c). toolkit therefore masks
    no path below ``/proc``, and makes none read-only. As a result, ``/proc/sys`` is writable, and root in the
    container has the power of root on the host.
    """
    return {
        "Image": machine.image,
        "Hostname": machine.address,
        "Cmd": list(machine.words),
        "Labels": dict(machine.labels),
        "ExposedPorts": {f"{port}/tcp": {} for port in machine.ports},
        "HostConfig": {
            "Binds": [f"{volume}:{path}" for volume, path in machine.volumes.items()],
            "NetworkMode": machine.network,
            "PortBindings": {
                f"{port}/tcp": [{"HostIp": machine.published[0], "HostPort": machine.published[1]}]
                for port in machine.ports
            },
            "Memory": machine.memory,
            "MemorySwap": machine.memory,
            # For a stopped node's name, Docker asks the host's DNS. By default, this lookup may take 10 s, so
            # wait only 1 s. On a busy machine, 1 s may be too short for a running node, so try three times.
            "DnsOptions": ["timeout:1", "attempts:3"],
            "ShmSize": machine.shared_memory,
            "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined"],
            "MaskedPaths": ["/sys/firmware", "/sys/devices/virtual/powercap"],
            "ReadonlyPaths": [],
            "Devices": [
                {"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rwm"}
            ],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "2"}},
        },
        "NetworkingConfig": {"EndpointsConfig": {machine.network: {"Aliases": [machine.address]}}},
    }


@contextlib.contextmanager
def open_nodes() -> Iterator["Nodes"]:
    """Connect to the Docker engine, yield a :class:`Nodes` object, and close the connection afterwards.

    Raises:
        Missing: if no engine answers.
    """
    client = connect()
    try:
        yield Nodes(client)
    finally:
        client.close()


class Nodes:
    """Creates, finds and removes the containers, networks and volumes of a Docker engine."""

    def __init__(self, client: "DockerClient") -> None:
        self.client = client
        self._api = client.api

    def containers_with(self, label: str) -> dict[str, NodeContainer]:
        """Return the running and stopped containers with a label (``KEY`` or ``KEY=VALUE``). The result maps
        each container's name to the container.
        """
        with translate_errors("listing containers"):
            listed = self._api.containers(all=True, filters={"label": label})
        machines = [_as_found(entry) for entry in listed]
        return {machine.name: machine for machine in machines}

    def make(self, machine: Machine) -> None:
        """Create a container without starting it, so that :meth:`put` can add files before the start."""
        settings = configuration(machine)
        with delay_signals(), translate_errors(f"making the container {machine.name}"):
            self._api.create_container_from_config(settings, machine.name)

    def put(self, name: str, archive: bytes) -> None:
        """Unpack a tar archive at the root of a container, which may be stopped."""
        with translate_errors(f"copying files to the container {name}"):
            self._api.put_archive(name, "/", archive)

    def start(self, name: str, *, paused: bool = False) -> None:
        """Start a created or stopped container. If ``paused`` is true, resume a paused container instead."""
        try:
            with translate_errors(f"starting the container {name}"):
                (self._api.unpause if paused else self._api.start)(name)
        except CheckFailed as error:
            if "/dev/fuse" in error.message:
                raise Missing(
                    "the machine of the Docker engine has no /dev/fuse, which nested containers need",
                    fix="load the kernel module on that machine: `sudo modprobe fuse`",
                ) from error
            raise

    def make_network(self, name: str, labels: Mapping[str, str]) -> None:
        """Create a network if it does not exist. The Docker engine chooses the network's addresses."""
        with delay_signals(), translate_errors(f"making the network {name}"):
            if not [n for n in self._api.networks(names=[name]) if n["Name"] == name]:
                self._api.create_network(name, driver="bridge", labels=dict(labels), check_duplicate=True)

    def make_volume(self, name: str, labels: Mapping[str, str]) -> None:
        """Create a volume if it does not exist."""
        with delay_signals(), translate_errors(f"making the volume {name}"):
            self._api.create_volume(name, labels=dict(labels))

    def remove(self, label: str) -> int:
        """Remove every container, network and volume with a label. Return the number of removed objects."""
        containers = self.containers_with(label)
        with translate_errors("removing containers, networks and volumes"):
            for name in containers:
                self._forget(self._api.remove_container, name, v=True, force=True)
            networks = [n["Id"] for n in self._api.networks(filters={"label": label})]
            for network in networks:
                self._forget(self._api.remove_network, network)
            volumes = [v["Name"] for v in self._api.volumes(filters={"label": label})["Volumes"] or ()]
            for volume in volumes:
                self._forget(self._api.remove_volume, volume, force=True)
        return len(containers) + len(networks) + len(volumes)

    def run(self, name: str, command: Command, user: str = "root") -> Completed:
        """Run a command in a container until it exits or reaches its time limit."""
        out, err = bytearray(), bytearray()

        def take(output: bytes, errors: bytes) -> None:
            out.extend(output)
            err.extend(errors)

        words = command.words
        if command.timeout is not None:
            words = ("timeout", "-k", _GRACE, str(command.timeout), *words)
        status = self.stream(name, words, take, user=user, env=command.env)
        # At the time limit, timeout(1) exits with 124 after SIGTERM, and with 137 after SIGKILL.
        timed_out = command.timeout is not None and status in (124, 137)
        return Completed(command, status, bytes(out), bytes(err), timed_out)

    def stream(
        self,
        name: str,
        words: Sequence[str],
        on_output: OnOutput,
        *,
        user: str = "root",
        folder: str = "/",
        env: Mapping[str, str] | None = None,
    ) -> int:
        """Run a command in a container, and return the command's exit status. Call ``on_output`` with new
        output as soon as the command prints it.
        """
        with translate_errors(f"running {words[0]} in the container {name}"):
            started = self._api.exec_create(
                name, list(words), user=user, workdir=folder, environment=dict(env or {})
            )["Id"]
            chunks = self._api.exec_start(started, stream=True, demux=True)
            try:
                for out, err in chunks:
                    on_output(out or b"", err or b"")
            finally:
                chunks.close()
                chunks._response.close()  # noqa: SLF001 - the SDK does not close its socket
            return int(self._api.exec_inspect(started)["ExitCode"])

    def log(self, name: str, lines: int) -> list[str]:
        """Return the last ``lines`` lines in the log of a container."""
        with translate_errors(f"reading the log of the container {name}"):
            output: bytes = self._api.logs(name, tail=lines)
        return output.decode("utf-8", "replace").splitlines()

    @staticmethod
    def _forget(remove: Callable[..., None], name: str, **options: bool) -> None:
        """Remove a Docker object. Ignore the error if another process has removed the Docker object or is
        removing it.
        """
        import docker

        try:
            remove(name, **options)
        except docker.errors.NotFound:
            pass
        except docker.errors.APIError as error:
            if "already in progress" not in str(error):
                raise


def _as_found(entry: Mapping[str, Any]) -> NodeContainer:
    return NodeContainer(
        name=entry["Names"][0].lstrip("/"),
        state=entry["State"],
        labels=entry["Labels"] or {},
        ports={p["PrivatePort"]: p["PublicPort"] for p in entry["Ports"] or () if "PublicPort" in p},
    )
