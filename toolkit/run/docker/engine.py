"""Connect to the Docker engine, build images, and save images.

The Docker SDK supports only the classic builder, so toolkit's Dockerfiles use no BuildKit features. This
module translates each exception of the Docker SDK into one of toolkit's exceptions.
"""

import contextlib
import os
import re
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import BadInput, CheckFailed, Interrupted, Missing
from toolkit.model.progress import Tell
from toolkit.run import clone
from toolkit.run.docker.buildlog import BuildLog
from toolkit.run.docker.containers import create_container
from toolkit.run.docker.engine_errors import is_engine_error, no_engine, translate_errors

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

MEMORY = "TOOLKIT_BUILD_MEMORY"
"""The environment variable that sets the memory limit of each build step, such as ``6g``."""

_ANSWER_SECONDS = 60
_STEPS = "Dockerfile"
_SOCKET = "unix:///var/run/docker.sock"
_AMPLE_MEMORY = 6 << 30
_SIZE = re.compile(r"(?P<number>\d+)(?P<unit>[bkmg]?)b?")
_SHIFTS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30}

Files = Mapping[str, bytes | Path]
"""A Docker build context: a mapping from each path in the context to the content of this path. The content is
given as bytes, or as the path of a file on this machine.
"""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of a build.

    ``memory`` is the memory limit of each build step in bytes. ``timeout`` is the time limit of the whole
    build in seconds. ``arguments`` are values for the ``ARG`` instructions of the Dockerfile. toolkit adds
    ``labels`` to the image in the last build step. ``network`` is the network of the build steps: ``none`` or
    ``host``. ``host`` works even if the engine provides no address translation (NAT) for containers.
    ``fresh`` disables the engine's build cache.
    """

    memory: int = 4 << 30
    timeout: float = 3600.0
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    network: str = "host"
    fresh: bool = False


def connect(timeout: float = _ANSWER_SECONDS) -> "DockerClient":
    """Return a client of the Docker engine that the ``docker`` command uses.

    ``DOCKER_HOST`` selects the engine. Without ``DOCKER_HOST``, toolkit uses the current context of the
    ``docker`` command, which rootless Docker and Docker Desktop set. If the current context is ``default``,
    toolkit uses the engine at ``/var/run/docker.sock``. ``timeout`` is the time limit of each request to the
    engine in seconds.

    Raises:
        Missing: if no engine answers, the user has no access to the engine, or the context is unreadable.
    """
    import docker

    if where := os.environ.get("DOCKER_HOST"):
        return _answering(lambda: docker.from_env(timeout=timeout), where)
    context = _context()
    if context is None:
        return _answering(lambda: docker.DockerClient(_SOCKET, timeout=timeout), _SOCKET)
    return _answering(
        lambda: docker.DockerClient(context.Host, tls=context.TLSConfig, timeout=timeout),
        context.Host,
        f" (the docker context {context.name})",
    )


def _answering(make: Callable[[], "DockerClient"], address: str, origin: str = "") -> "DockerClient":
    """Create a client with ``make``, and return the client after the engine has answered.

    ``address`` is the address of the engine. Error messages show ``origin`` after the address, for example
    " (the docker context desktop-linux)".
    """
    with contextlib.ExitStack() as unless_it_answers:
        try:
            if address.startswith("unix://"):
                _knock(address.removeprefix("unix://"))
            client = make()
            unless_it_answers.callback(client.close)
            client.ping()
        except Exception as error:
            # For ssh:// addresses, the SDK also passes on exceptions of name lookups, sockets and paramiko.
            if not is_engine_error(error) and not isinstance(error, OSError | ValueError):
                raise
            raise no_engine(error, f"{address}{origin}") from error
        unless_it_answers.pop_all()
    return client


def _knock(path: str) -> None:
    """Raise ``OSError`` if no process listens on the Unix socket ``path``.

    Without this check, the Docker SDK would leave a socket open if no process listens.
    """
    with socket.socket(socket.AF_UNIX) as knocking:
        knocking.settimeout(_ANSWER_SECONDS)
        knocking.connect(path)


def _context() -> Any:  # noqa: ANN401 - the SDK has no types; the value stays in this module
    """Return the docker command's current context. Return ``None`` if the context is ``default`` or has no
    address.
    """
    from docker.context import ContextAPI

    try:
        context = ContextAPI.get_context(os.environ.get("DOCKER_CONTEXT"))
    except Exception as error:  # for a damaged context file, the SDK raises a plain Exception
        raise Missing(
            f"the docker command's context cannot be read: {error}",
            fix="check the contexts with `docker context ls`, or set `DOCKER_HOST` to the engine's address",
        ) from error
    return None if context is None or context.name == "default" or not context.Host else context


class ParallelBuilds:
    """Image builds that run at the same time, each in a thread. If one build fails or the user interrupts
    toolkit, toolkit stops all builds.
    """

    def __init__(self, client: "DockerClient") -> None:
        self._client = client
        self._logs: list[BuildLog] = []
        self._ended = threading.Event()

    def joined(self, log: BuildLog) -> None:
        self._logs.append(log)
        self.go_on()

    def go_on(self) -> None:
        """Raise :class:`Interrupted` if :meth:`end` has stopped the builds."""
        if self._ended.is_set():
            raise Interrupted("interrupted")

    def end(self) -> None:
        """Stop all builds. This method removes the container of each current build step, so that the step
        fails at once.
        """
        self._ended.set()
        for log in self._logs:
            _remove_container(self._client, log.container)


def build_image(
    client: "DockerClient",
    files: Files,
    subject: str,
    tell: Tell,
    options: BuildOptions,
    builds: ParallelBuilds | None = None,
) -> str:
    """Build an image from the context ``files``, which includes a ``Dockerfile``, and return the image's ID.

    This function does not tag the image. The caller first checks the image and then tags it, so that a tag
    never refers to an unchecked image. ``subject`` names the image in messages. If several builds run at the
    same time, the caller passes the same ``builds`` to each call of this function. The engine caches each
    finished step, even if a later step fails.

    Raises:
        CheckFailed: if a step fails, or the build exceeds its time limit. The error names the step and shows
            the last output lines of the step.
        Missing: if the engine stops answering.
    """
    log = BuildLog(subject, tell, options.memory)
    try:
        if builds:
            builds.joined(log)
        with translate_errors(f"building {subject}"):
            events = client.api.build(
                # The SDK sends the first files of this generator while toolkit packs the next files.
                fileobj=pack_context(add_labels(files, options.labels)),
                custom_context=True,
                dockerfile=_STEPS,
                rm=True,
                forcerm=True,
                decode=True,
                network_mode=options.network,
                nocache=options.fresh,
                buildargs=dict(options.arguments),
                container_limits={"memory": options.memory, "memswap": options.memory},
                timeout=options.timeout,
            )
            with contextlib.closing(events):  # closing the stream cancels the build
                _follow(events, log, options.timeout, builds)
    except BaseException:
        _remove_container(client, log.container)
        raise
    if not log.image:
        raise Missing(
            f"{subject}: the Docker engine stopped the build {log.where()} and gave no reason",
            fix="check with `docker info` that the Docker engine still runs, then run the same command again",
            detail=log.recent(),
        )
    return log.image


def find_image(client: "DockerClient", name: str) -> "Image | None":
    """Return the Docker engine's image with this name or ID, or ``None`` if the engine has no such image."""
    import docker

    with translate_errors(f"looking for the image {name}"):
        try:
            return client.images.get(name)
        except docker.errors.ImageNotFound:
            return None


def tag_image(client: "DockerClient", image: str, tag: str) -> None:
    """Tag an image. If another image had this tag before and has no other tag, remove that image but keep its
    cached build steps.
    """
    former = find_image(client, tag)
    with translate_errors(f"tagging {tag}"):
        client.api.tag(image, *tag.rsplit(":", 1), force=True)
    clone.record_image(image, tag)
    if former is not None and former.id != image:
        forget_image(client, former.id)


def forget_image(client: "DockerClient", image: str) -> None:
    """Remove an image if it has no tag, but keep its cached build steps."""
    import docker

    # Ignore errors: the Docker engine keeps an image that another tag or a container uses.
    with contextlib.suppress(docker.errors.APIError, OSError):
        if not client.images.get(image).tags:
            client.api.remove_image(image, noprune=True)


def named_like(client: "DockerClient", start: str) -> tuple[str, ...]:
    """Return all image names (``REPOSITORY:TAG``) in the engine that start with ``start``, sorted."""
    with translate_errors("listing images"):
        images = client.api.images()
    return tuple(sorted(t for image in images for t in image.get("RepoTags") or () if t.startswith(start)))


def untag_image(client: "DockerClient", tag: str) -> None:
    """Remove a tag of an image. If the image has no other tag, the engine also removes the image, unless a
    container uses the image.
    """
    import docker

    with contextlib.suppress(docker.errors.APIError, OSError):
        client.api.remove_image(tag)


def stream_folder(client: "DockerClient", image: str, folder: str) -> Iterator[bytes]:
    """Yield a tar of a folder in an image, in chunks. The function runs no program of the image."""
    doing = f"copying {folder} out of the image {image[:19]}"
    with translate_errors(doing), create_container(client, image, ["true"], doing) as name:
        stream, _ = client.api.get_archive(name, folder, chunk_size=_CHUNK)
        yield from stream


def stream_archive(client: "DockerClient", image: str) -> Iterator[bytes]:
    """Yield an image as a docker-archive in chunks."""
    with translate_errors(f"copying the image {image} from the Docker engine"):
        yield from client.api.get_image(image, chunk_size=1 << 20)


def build_memory(client: "DockerClient") -> int:
    """Return the memory limit of a build step in bytes: the value of ``TOOLKIT_BUILD_MEMORY``, or a default.

    The default memory limit is three quarters of the memory of the Docker engine's machine, at most 6 GiB.
    """
    if limit := os.environ.get(MEMORY):
        match = _SIZE.fullmatch(limit.strip().lower())
        if not match:
            raise BadInput(f"{MEMORY}={limit}: expected a size, such as 6g or 6000m")
        return int(match["number"]) << _SHIFTS[match["unit"]]
    _, total = machine(client)
    return min(_AMPLE_MEMORY, total * 3 // 4)


def machine(client: "DockerClient") -> tuple[int, int]:
    """Return the number of processors and the memory in bytes of the engine's machine."""
    with translate_errors("asking the Docker engine for its memory and processors"):
        info = client.info()
    return int(info.get("NCPU") or 1), int(info.get("MemTotal") or 4 << 30)


def architecture(client: "DockerClient") -> str:
    """Return the processor type of the engine's machine, such as ``x86_64``."""
    with translate_errors("asking the Docker engine for its processor"):
        return str(client.info().get("Architecture") or "")


def _follow(
    events: Iterator[Mapping[str, Any]], log: BuildLog, timeout: float, builds: ParallelBuilds | None
) -> None:
    deadline = time.monotonic() + timeout
    for event in events:
        log.take(event)
        if builds:
            builds.go_on()
        if time.monotonic() > deadline:
            raise CheckFailed(
                f"toolkit stopped the build {log.where()}, because the whole build took longer than "
                f"{timeout:.0f} s",
                fix="run the same command again with `--verbose`, which shows the output of every step",
                detail=log.recent(),
            )


def add_labels(files: Files, labels: Mapping[str, str]) -> Files:
    """Return the build context ``files`` with one more instruction at the end of the Dockerfile, which sets
    the labels.

    If toolkit passed the labels in the build request, the engine would run a separate step for each label.
    """
    if not labels:
        return files
    steps = b"".join(_content(files[_STEPS])).rstrip(b"\n")
    pairs = " ".join(f"{_quoted(name)}={_quoted(value)}" for name, value in labels.items())
    return {**files, _STEPS: steps + f"\nLABEL {pairs}\n".encode()}


def _quoted(text: str) -> str:
    """Return a text in double quotes, with the escapes that a Dockerfile needs to keep the text unchanged."""
    if wrong := re.search(r"[\x00-\x1f\x7f]", text):
        raise BadInput(f"{text!r}: a label cannot contain the character {wrong[0]!r}")
    return '"' + re.sub(r'(["\\$])', r"\\\1", text) + '"'


def pack_context(files: Files) -> Iterator[bytes]:
    """Yield a tar of the build context, in chunks. The bytes of the tar depend only on the names and contents
    of the files.
    """
    for name in sorted(files):
        content = files[name]
        entry = tarfile.TarInfo(name)
        entry.size = len(content) if isinstance(content, bytes) else content.stat().st_size
        entry.mode = 0o644
        yield entry.tobuf(tarfile.PAX_FORMAT)
        yield from _content(content)
        yield b"\0" * (-entry.size % tarfile.BLOCKSIZE)
    yield b"\0" * tarfile.RECORDSIZE


def _content(content: bytes | Path) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as reading:
        while chunk := reading.read(_CHUNK):
            yield chunk


def _remove_container(client: "DockerClient", container: str) -> None:
    """Remove the container of an interrupted build step at once. The engine itself might remove it later."""
    if container:
        with contextlib.suppress(Exception):
            client.api.remove_container(container, force=True)
