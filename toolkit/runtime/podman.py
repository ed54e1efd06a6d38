"""Rootless podman: write the command line that starts a container, and read the output of ``toolkit probe``.

podman-run(1) documents the options. toolkit's developers ran podman 5.4.2 and crun 1.21 with the options of
this module on cgroup v1 (tests/matrix, flavour ``podman``). toolkit needs ``--pid=host``, and therefore does
not use ``--cgroups=disabled``: podman refuses to use both options together. Without ``--pid=host``, each rank
has process number 1 in a separate process namespace. Because the process numbers are equal, Open MPI then
confuses the shared memory segments of different ranks.
"""

import re
from collections.abc import Iterable, Mapping

from toolkit.knowledge.runtime import knows
from toolkit.model.facts import ContainerRuntime, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.runtime.aspects import Answer, Aspect

NAMES: tuple[str, ...] = ("podman",)
SECTION = "podman"
FORMATS = frozenset({"docker-archive", "oci-archive"})
SPLITS = False
"""Without ``--userns``, all containers of a user on a node share podman's user namespace."""
BY_ROOT: bool | None = False
KEEPS_FOLDER = False
IN_LAUNCHER = False
SET_ENV = ""
GPUS: tuple[str, ...] = ("--device=nvidia.com/gpu=all",)
CDI = "nvidia.com/gpu"
HOOKS = "--hooks-dir"
UNMAPPED = "--userns=nomap"
"""The option for a user namespace that does not map the user who starts the container (podman-run(1))."""
KEEP_GROUPS = "--group-add=keep-groups"
AMD_GPUS: tuple[str, ...] = ("--device=/dev/kfd", "--device=/dev/dri", KEEP_GROUPS)
"""The options for AMD GPUs; toolkit's developers have run neither these options nor the options for NVIDIA
GPUs.

Sources: podman 4.1; NVIDIA Container Toolkit, "Support for Container Device Interface" (CDI).
"""
PREPARES = "podman.sh"
MEASURED = True
MOUNTS_IMAGES = False

DESCRIPTOR = "--preserve-fd=PMI_FD"
"""The option that keeps the PMI socket open in the container.

Slurm and Hydra open a PMI socket for each rank; the variable ``PMI_FD`` contains the socket's file
descriptor. Podman closes the socket unless this option names the variable.
"""
_KEEP = 'exec "$0" --cgroup-manager=cgroupfs run ${PMI_FD:+"--preserve-fd=$PMI_FD"} "$@"'

HIDES: Mapping[Aspect, frozenset[str]] = {"users": frozenset({"--userns=keep-id"})}
SHARES: Mapping[Aspect, str] = {
    "environment": "--env-host",
    "tmp": "",
    "home": "",
    "shm": "--ipc=host",
    "processes": "--pid=host",
    "network": "--network=host",
    "identity": "--userns=keep-id",
    "descriptors": DESCRIPTOR,
}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def standard(image: ImageFacts, facts: ContainerRuntime | None) -> tuple[str, ...]:
    """Return the options that toolkit gives to podman in every launch.

    ``--env-host`` overwrites variables of the image, so later options set the image's variables again.
    """
    own = {"PATH": _PATH, **image.environment}
    return (
        "--env-host",
        *(f"--env={name}={value}" for name, value in own.items()),
        *("--network=host", "--ipc=host", "--pid=host", "--userns=keep-id", "--ulimit=host"),
        "--security-opt=label=disable",
        *((DESCRIPTOR,) if facts and knows("podman", facts.version, "--preserve-fd") else ()),
    )


def words(command: str, options: Iterable[str], binds: Iterable[str]) -> list[str]:
    """Return the words of the command line that precede the image: the command, its options and the bind
    mounts.

    With ``--entrypoint=``, podman does not run the image's entrypoint. ``apptainer exec`` and ``ch-run`` do
    not run the entrypoint either.
    """
    given = tuple(options)
    bound = (f"--volume={_volume(bind)}" for bind in dict.fromkeys(binds))
    rest = ("--rm", "--pull=never", "--entrypoint=", *(word for word in given if word != DESCRIPTOR), *bound)
    if DESCRIPTOR in given:
        return ["sh", "-c", _KEEP, command, *rest]
    return [command, "--cgroup-manager=cgroupfs", "run", *rest]


def _volume(bind: str) -> str:
    return bind if ":" in bind else f"{bind}:{bind}"


def image(spec: JobSpec) -> tuple[str, ...]:
    """Return the image's name in podman's image store on each node. If the image is an archive, podman loads
    the archive under a name that only this job uses.
    """
    if not spec.image.startswith(("/", "$")):
        return (spec.image,)
    key = re.sub(r"[^a-z0-9]+", "-", spec.directory.rpartition("/")[2].lower()).strip("-")
    return (f"localhost/toolkit/{key or 'image'}:latest",)


def definition(spec: JobSpec, binds: Iterable[str]) -> str:  # noqa: ARG001 - the protocol has this argument
    """Return an empty string, because podman does not need a file that describes the image."""
    return ""


def workdir(folder: str) -> tuple[str, ...]:
    """Return the option that makes ``folder`` the working directory in the container."""
    return (f"--workdir={folder}",)


def read(answer: Answer) -> ContainerRuntime | None:
    """Return the facts about podman from the section ``podman`` of the probe's output. Return ``None`` if the
    host does not have podman.
    """
    path = next(iter(answer.values("path")), "")
    if not path:
        return None
    found = (re.match(r"podman version (\S+)", line) for line in answer.lines)
    version = next((one[1] for one in found if one), "")
    pairs = (line.partition("=") for line in answer.values("setting"))
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    return ContainerRuntime(name="podman", version=version, path=path, setuid=False, settings=settings)
