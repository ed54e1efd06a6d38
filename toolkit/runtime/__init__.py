"""Container runtimes: how a command is started in an image. A new runtime is a module in this package."""

import posixpath
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from toolkit.model.facts import ContainerRuntime, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.runtime import apptainer, centres, charliecloud, edf, enroot, podman
from toolkit.runtime.aspects import Answer, Aspect

COMMAND = apptainer.COMMAND
"""The program if neither facts nor a site profile name one."""


class Runtime(Protocol):
    """What a module of this package has."""

    NAMES: tuple[str, ...]
    """The names of its programs, on PATH and in facts."""
    SECTION: str
    """The section of the probe's answer about the runtime."""
    FORMATS: frozenset[str]
    """Forms of an image that a job starts from."""
    HIDES: Mapping[Aspect, frozenset[str]]
    """Options that separate a container from its node."""
    SHARES: Mapping[Aspect, str]
    """Options without which a container is separate; empty if no option shares the aspect."""
    SPLITS: bool
    """Without setuid each start makes a new user namespace, whatever the options are."""
    BY_ROOT: bool | None
    """A service or program of root makes its containers; ``False``: the user does, in a user namespace;
    ``None``: as it is installed."""
    KEEPS_FOLDER: bool
    """A command starts in the folder that the launcher is in."""
    IN_LAUNCHER: bool
    """The words are options of srun; variables are then dropped inside the container."""
    GPUS: tuple[str, ...]
    """Options that mount GPUs of NVIDIA and their driver."""
    AMD_GPUS: tuple[str, ...]
    """Options that mount GPUs of AMD; empty if the runtime has no such options."""
    PREPARES: str
    """A shell script below ``slurm`` that gives each node the image before ranks start; empty without such a
    script.
    """

    MOUNTS_IMAGES: bool
    """A file that holds a file system can be mounted in a container, by a user without privileges."""
    MEASURED: bool
    """True if launches with this runtime were recorded. If not, the command line follows only the
    documentation."""

    def standard(self, image: ImageFacts, found: ContainerRuntime | None) -> tuple[str, ...]:
        """Return options of every launch."""
        ...

    def words(self, command: str, options: Iterable[str], binds: Iterable[str]) -> list[str]:
        """Return the words in front of the image."""
        ...

    def image(self, spec: JobSpec) -> tuple[str, ...]:
        """Return the words that name the image of a job, up to the command."""
        ...

    def definition(self, spec: JobSpec, binds: Iterable[str]) -> str:
        """Return the text of a file with the image and its mounts, empty if words are enough."""
        ...

    def workdir(self, folder: str) -> tuple[str, ...]:
        """Return the options by which a command starts in a folder of the container."""
        ...

    def read(self, answer: Answer) -> ContainerRuntime | None:
        """Return the facts about the runtime on a machine; ``None`` if it is absent."""
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
"""The preferred runtime first."""


_SAME = {"--net": "--network"}
"""Short names of options (podman-run(1), ``--network=mode, --net``)."""


def spell_options(kind: Runtime, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return options as the runtime's module writes them: ``--net host`` as ``--network=host``.

    Only options with a value change, and only if the module knows them.
    """
    known = {
        *kind.SHARES.values(),
        *kind.GPUS,
        *kind.AMD_GPUS,
        *(w for some in kind.HIDES.values() for w in some),
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
    """Return the runtime of a command, a path or a name in facts; Apptainer for any other."""
    name = posixpath.basename(command)
    return next((one for one in RUNTIMES if name in one.NAMES), apptainer)


def formats() -> frozenset[str]:
    """Return the forms of an image that some runtime starts."""
    return frozenset().union(*(one.FORMATS for one in RUNTIMES))
