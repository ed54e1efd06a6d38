"""Describe a container runtime by its command-line options, so that the runtime needs no separate module."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from toolkit.model.facts import ContainerRuntime, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.runtime.aspects import Answer, Aspect


@dataclass(slots=True)
class Described:
    """The attributes of :class:`toolkit.runtime.Runtime`, for a runtime without its own module.

    ``bind`` returns the command-line words for all bind mounts, and receives each mount as ``(SOURCE, TARGET,
    OPTIONS)``. ``name`` returns the words for an image path, and ``folder`` returns the words for a working
    directory. ``start`` has the words directly after the runtime's command, such as ``run``. ``options`` has
    the options of every launch.
    """

    NAMES: tuple[str, ...]
    FORMATS: frozenset[str]
    bind: Callable[[tuple[tuple[str, str, str], ...]], tuple[str, ...]]
    name: Callable[[str], tuple[str, ...]]
    folder: Callable[[str], tuple[str, ...]]
    start: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    setuid: bool | None = None
    GPUS: tuple[str, ...] = ()
    AMD_GPUS: tuple[str, ...] = ()
    HIDES: Mapping[Aspect, frozenset[str]] = field(default_factory=dict)
    SHARES: Mapping[Aspect, str] = field(default_factory=dict)
    SPLITS: bool = False
    BY_ROOT: bool | None = False
    KEEPS_FOLDER: bool = False
    IN_LAUNCHER: bool = False
    SECTION: str = "runtime"
    SET_ENV: str = ""
    PREPARES: str = ""
    MEASURED: bool = False
    MOUNTS_IMAGES: bool = False

    def standard(self, image: ImageFacts, facts: ContainerRuntime | None) -> tuple[str, ...]:  # noqa: ARG002
        """Return the options that toolkit gives to the runtime in every launch."""
        own = image.environment.items() if self.SET_ENV else ()
        return (*self.options, *(f"{self.SET_ENV}{name}={value}" for name, value in own))

    def words(self, command: str, options: Iterable[str], binds: Iterable[str]) -> list[str]:
        """Return the words of the command line that precede the image: the command, its options and the bind
        mounts.
        """
        parts = [bind.split(":") for bind in dict.fromkeys(binds)]
        bound = tuple((p[0], p[1] if len(p) > 1 else p[0], ":".join(p[2:])) for p in parts)
        program = () if self.IN_LAUNCHER else (command, *self.start)
        return [*program, *options, *(self.bind(bound) if bound else ())]

    def image(self, spec: JobSpec) -> tuple[str, ...]:
        """Return the words of the command line that name the image of a job."""
        return self.name(spec.image)

    def definition(self, spec: JobSpec, binds: Iterable[str]) -> str:  # noqa: ARG002
        """Return an empty string, because the runtime does not need a file that describes the image."""
        return ""

    def workdir(self, folder: str) -> tuple[str, ...]:
        """Return the options that set the working directory in the container."""
        return self.folder(folder)

    def read(self, answer: Answer) -> ContainerRuntime | None:
        """Return the facts about the runtime, or ``None`` if the host does not have the runtime.

        The version in the facts is empty if the probe did not print a version.
        """
        name = self.NAMES[0]
        if name not in answer.values("other"):
            return None
        version = next(iter(answer.values(f"version {name}")), "")
        return ContainerRuntime(name=name, version=version, path=name, setuid=self.setuid)


def option(start: str, separator: str = ":") -> Callable[[tuple[tuple[str, str, str], ...]], tuple[str, ...]]:
    """Return a function that writes each bind mount as one word, such as ``--mount=SOURCE:TARGET:ro``.

    ``start`` is the text before the source. ``separator`` is the text between the source,
    the target and the options.
    """

    def words(binds: tuple[tuple[str, str, str], ...]) -> tuple[str, ...]:
        return tuple(start + separator.join(part for part in bind if part) for bind in binds)

    return words


def joined_binds(
    start: str, separator: str, flags: str
) -> Callable[[tuple[tuple[str, str, str], ...]], tuple[str, ...]]:
    """Return a function that writes all bind mounts as one word of the command line.

    ``start`` is the text before the first mount, ``separator`` is the text between two mounts, and ``flags``
    is the text before the options of a mount.
    """

    def words(binds: tuple[tuple[str, str, str], ...]) -> tuple[str, ...]:
        texts = (f"{source}:{target}{flags + more if more else ''}" for source, target, more in binds)
        return (start + separator.join(texts),)

    return words
