"""The container runtimes that toolkit supports, such as Apptainer and Podman.

To add a runtime, add a module to this package, and add the module or its runtime to :data:`RUNTIMES`.
"""

import posixpath
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from toolkit.model.facts import ContainerRuntime, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.runtime import apptainer, centres, charliecloud, edf, enroot, podman
from toolkit.runtime.aspects import Answer, Aspect

COMMAND = apptainer.COMMAND
"""The command that toolkit uses if neither the facts about the host nor a site profile name the runtime's
command.
"""


class Runtime(Protocol):
    """The attributes of a container runtime, which a module or a :class:`.Described` value provides."""

    NAMES: tuple[str, ...]
    """The names of the runtime's commands on PATH. In a host's facts, the runtime has one of these names."""
    SECTION: str
    """The name of the section that describes the runtime in the probe's output."""
    FORMATS: frozenset[str]
    """The image formats that the runtime can start."""
    HIDES: Mapping[Aspect, frozenset[str]]
    """For each :data:`.Aspect` of a node, such as ``tmp``, the runtime's options that stop the container from
    sharing this aspect with the node.
    """
    SHARES: Mapping[Aspect, str]
    """For each aspect that containers do not share with the node by default, the runtime's option that makes
    a container share this aspect; empty if there is no such option.

    Containers share all other aspects with the node by default. An option in ``HIDES`` stops this.
    """
    SPLITS: bool
    """Whether the runtime creates a new user namespace for each container if it runs without setuid."""
    BY_ROOT: bool | None
    """Whether a service that runs as root, or a setuid program of root, creates the containers.

    ``False`` means that the user creates containers in a user namespace. ``None`` means that the installation
    decides whether root or the user creates the containers.
    """
    KEEPS_FOLDER: bool
    """Whether a command in the container starts in the launcher's working directory."""
    SET_ENV: str
    """The option that sets one environment variable of the image's configuration in the container; empty if
    the runtime itself sets all variables of the image's configuration.
    """
    IN_LAUNCHER: bool
    """Whether the runtime's options are options of srun.

    If they are, srun itself starts the container. Inside the container, the command ``env`` then removes the
    variables that ranks must not see. With other runtimes, ``env`` runs before the container starts.
    """
    GPUS: tuple[str, ...]
    """Options that mount the node's NVIDIA GPUs and their driver into the container."""
    AMD_GPUS: tuple[str, ...]
    """Options that mount the node's AMD GPUs into the container; empty if the runtime has no such options."""
    PREPARES: str
    """The name of the shell script, in toolkit's folder ``slurm``, that loads the image on each node before
    ranks start; empty if the runtime needs no script.
    """

    MOUNTS_IMAGES: bool
    """Whether a user without privileges can mount a file system image in a container."""
    MEASURED: bool
    """Whether toolkit's developers recorded launches with this runtime.

    If not, the developers know the runtime's options only from its documentation.
    """

    def standard(self, image: ImageFacts, facts: ContainerRuntime | None) -> tuple[str, ...]:
        """Return the options that toolkit gives to the runtime in every launch."""
        ...

    def words(self, command: str, options: Iterable[str], binds: Iterable[str]) -> list[str]:
        """Return the words of the command line that precede the image: the command, its options and the bind
        mounts.
        """
        ...

    def image(self, spec: JobSpec) -> tuple[str, ...]:
        """Return the words of the command line that name the image of a job."""
        ...

    def definition(self, spec: JobSpec, binds: Iterable[str]) -> str:
        """Return the text of the file from which the runtime reads the image's path and the mounts. Return an
        empty string if the runtime reads no such file.
        """
        ...

    def workdir(self, folder: str) -> tuple[str, ...]:
        """Return the options that set the working directory in the container."""
        ...

    def read(self, answer: Answer) -> ContainerRuntime | None:
        """Return the facts about the runtime from ``answer``, its section of the probe's output. Return
        ``None`` if the host lacks the runtime.
        """
        ...


RUNTIMES: tuple[Runtime, ...] = (
    apptainer,
    podman,
    charliecloud.RUNTIME,
    edf.CE,
    enroot.PYXIS,
    enroot.RUNTIME,
    centres.PODMAN_HPC,
    centres.SHIFTER,
    centres.SARUS,
)
"""All container runtimes, in the order in which toolkit prefers them."""


_SAME = {"--net": "--network"}
"""Short names of options, each with the long name (podman-run(1), ``--network=mode, --net``)."""


def spell_options(runtime: Runtime, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a user's runtime options in the form that the runtime's module uses. For example, ``--net host``
    becomes ``--network=host``.

    The function changes only options that have a value and occur in the runtime's ``SHARES``, ``HIDES``,
    ``GPUS`` or ``AMD_GPUS``.
    """
    known = {
        *runtime.SHARES.values(),
        *runtime.GPUS,
        *runtime.AMD_GPUS,
        *(w for some in runtime.HIDES.values() for w in some),
    }
    names = {word.partition("=")[0] for word in known if "=" in word}
    spelled, given = [], iter(words)
    for word in given:
        name, sign, value = word.partition("=")
        name = _SAME.get(name, name) if _SAME.get(name) in names else name
        if name not in names:
            spelled.append(word)
        else:
            spelled.append(f"{name}={value if sign else next(given, '')}")
    return tuple(spelled)


@lru_cache(1024)
def runtime_of_name(command: str) -> Runtime:
    """Return the runtime that has the command ``command``, a name or a path. Return Apptainer for an unknown
    command.
    """
    name = posixpath.basename(command)
    return next((one for one in RUNTIMES if name in one.NAMES), apptainer)


def formats() -> frozenset[str]:
    """Return the image formats that at least one runtime can start."""
    return frozenset().union(*(one.FORMATS for one in RUNTIMES))
