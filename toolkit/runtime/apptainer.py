"""Apptainer and Singularity: write the command line that starts a container, and read the facts about the
installation from the output of ``toolkit probe``.
"""

import re
from collections.abc import Iterable, Mapping

from toolkit.errors import BadInput
from toolkit.model.facts import ContainerRuntime, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.runtime.aspects import Answer, Aspect

COMMAND = "singularity"
"""The command that toolkit uses if it has no facts about the host. An installation of Apptainer usually
provides both commands, ``apptainer`` and ``singularity``.
"""

NAMES: tuple[str, ...] = ("apptainer", "singularity", "singularity-ce", "singularity-pro")
SECTION = "runtime"
FORMATS = frozenset({"sif", "squashfs"})
SPLITS = True
BY_ROOT: bool | None = None
KEEPS_FOLDER = True
IN_LAUNCHER = False
SET_ENV = ""
GPUS: tuple[str, ...] = ("--nv",)
AMD_GPUS: tuple[str, ...] = ("--rocm",)
PREPARES = ""
MEASURED = True
MOUNTS_IMAGES = True
IMAGE_BIND = ":image-src=/,ro"
"""The end of a ``--bind`` value that mounts a file system image (Apptainer user guide, "Image Mounts").

Without ``ro``, Apptainer warns that it cannot write to the image file.
"""

_ALL = frozenset({"-C", "--containall", "--compat"})
_CONTAINS = _ALL | {"-c", "--contain"}
HIDES: Mapping[Aspect, frozenset[str]] = {
    "environment": _ALL | {"-e", "--cleanenv"},
    "tmp": _CONTAINS,
    "shm": _CONTAINS,
    "home": _CONTAINS | {"--no-home"},
    "identity": frozenset({"-f", "--fakeroot"}),
    "processes": frozenset({"-p", "--pid", "--unshare-pid"}),
    "users": frozenset({"-u", "--userns", "--unshare-userns", "-f", "--fakeroot"}),
    "network": frozenset({"-n", "--net"}),
}
SHARES: Mapping[Aspect, str] = {}

_VERSION = re.compile(r"^(apptainer|singularity(?:-ce|-?pro)?)\s+version\s+(\S+)", re.IGNORECASE)
_PRO = "singularity-pro"
"""The name that toolkit uses for SingularityPRO, which prints ``SingularityPRO version 3.11-7.el8``.

Source: sylabs/singularity:e2e/version/version.go.
"""
_NUMBER_ALONE = re.compile(r"^\d+\.\d+\S*$", re.ASCII)
"""A pattern for the version that Singularity 2 prints without a program name, such as ``2.6.1-dist``.

Source: sylabs/singularity:bin/singularity.in at 2.6.1.
"""


def standard(
    image: ImageFacts,  # noqa: ARG001 - the Runtime protocol has this argument
    facts: ContainerRuntime | None,  # noqa: ARG001
) -> tuple[str, ...]:
    """Return an empty tuple, because there is no option that Apptainer needs in every launch."""
    return ()


def words(command: str, options: Iterable[str], binds: Iterable[str]) -> list[str]:
    """Return the words of the command line that precede the image: the command, its options and the bind
    mounts.
    """
    bound = (word for bind in dict.fromkeys(binds) for word in ("--bind", bind))
    return [command, "exec", *options, *bound]


def image(spec: JobSpec) -> tuple[str, ...]:
    """Return the word of the command line that names the image: the path of the image file."""
    return (spec.image,)


def definition(spec: JobSpec, binds: Iterable[str]) -> str:  # noqa: ARG001 - the protocol has this argument
    """Return an empty string, because Apptainer does not need a file that describes the image."""
    return ""


def workdir(folder: str) -> tuple[str, ...]:
    """Return the option that makes ``folder`` the working directory in the container."""
    return ("--pwd", folder)


def bind(source: str, target: str | None = None, *, read_only: bool = False) -> str:
    """Return the value of Apptainer's option ``--bind`` that mounts the host's path ``source`` at ``target``
    in the container. Without ``target``, the path in the container is the same as on the host.

    Raises:
        BadInput: if a path contains a line break, or a comma or colon, at which ``--bind`` splits its value.
    """
    for path in (source, target or ""):
        if bad := next((c for c in ",:\n" if c in path), None):
            raise BadInput(
                f"{path!r} contains {bad!r}, which a path in Apptainer's option --bind cannot contain",
                fix="use a path that has no comma, colon or line break",
            )
    if not target and not read_only:
        return source
    return f"{source}:{target or source}" + (":ro" if read_only else "")


def bind_image(file: str, target: str) -> str:
    """Return the value of Apptainer's option ``--bind`` that mounts the squashfs image ``file`` at ``target``
    in the container.

    Raises:
        BadInput: if the path ``file`` contains a comma, a colon or a line break.
    """
    bind(file)
    return f"{file}:{target}{IMAGE_BIND}"


def read(answer: Answer) -> ContainerRuntime | None:
    """Return the facts about Apptainer or Singularity from the section ``runtime`` of the probe's output.
    Return ``None`` if the host has neither.
    """
    path = next(iter(answer.values("path")), "")
    if not path:
        return None
    name, version = _release(answer) or (path.rpartition("/")[2], "")
    configured = settings(answer)
    setuid = _setuid(answer, configured)
    return ContainerRuntime(
        name=name,
        version=version,
        path=path,
        setuid=setuid,
        settings=configured,
        unbound=_unbound(answer, setuid),
    )


def _release(answer: Answer) -> tuple[str, str] | None:
    for line in answer.lines:
        if found := _VERSION.match(line):
            name = found[1].lower()
            return _PRO if name.endswith("pro") else name, found[2]
        if _NUMBER_ALONE.match(line):
            return "singularity", line
    return None


def settings(answer: Answer) -> dict[str, str]:
    """Return the settings of apptainer.conf from lines such as ``setting mount tmp = yes``.

    If a setting has several lines, the first line with a value applies
    (apptainer/apptainer:pkg/util/apptainerconf/parser.go at v1.4.5, GetDirectives and GetConfig;
    sylabs/singularity:pkg/util/singularityconf/parser.go at v4.3.7).
    """
    found: dict[str, str] = {}
    for name, _, value in (line.partition("=") for line in answer.values("setting")):
        if value.strip():
            found.setdefault(name.strip(), value.strip())
    return found


def _unbound(answer: Answer, setuid: bool | None) -> tuple[str, ...]:
    """Return the paths that Apptainer cannot mount: missing paths and, without setuid, unreadable paths.

    For a missing or unreadable path, Apptainer 1.4.5 without setuid fails with "mount source … doesn't exist"
    or "permission denied".
    """
    return (*answer.values("unbound"), *(answer.values("unseen") if setuid is False else ()))


def _setuid(answer: Answer, conf_settings: dict[str, str]) -> bool | None:
    said = answer.values("setuid")
    if not said:
        return None
    return "yes" in said and conf_settings.get("allow setuid") != "no"
