"""Create the files that toolkit itself adds to a SIF: ``/.singularity.d`` and mount points.

When Apptainer 1.4 converts a Docker image, it writes scripts and labels to ``/.singularity.d`` (apptainer:
internal/pkg/build/sources). toolkit writes its own scripts. They give the program in the container the same
environment variables and arguments as Apptainer's scripts. toolkit also writes Apptainer's labels.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath

import msgspec

from toolkit.data import shipped_folder
from toolkit.image.sifs.ociconfig import OciConfig
from toolkit.image.sifs.pseudo import Node

ROOT = ".singularity.d"
EMPTY = ("etc/hosts", "etc/hostname", "etc/resolv.conf")
"""Files of the image over which the Docker engine mounts its own files. In the SIF, these files are empty.
They are mount points for files of the container runtime.
"""

KERNEL_FOLDERS = ("dev", "proc", "sys")
"""Folders in which a container sees the kernel's files instead of the image's files."""

_FOLDERS = ("etc", "home", "root", "var")
_OPEN_FOLDERS = ("tmp", "var/tmp")
_LINKS = {
    ".exec": "actions/exec",
    ".run": "actions/run",
    ".shell": "actions/shell",
    ".test": "actions/test",
    "environment": "env/90-environment.sh",
    "singularity": "runscript",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RUNSCRIPT = """\
#!/bin/sh
# What this image starts, from its OCI configuration.
OCI_ENTRYPOINT={entrypoint}
OCI_CMD={command}

# By default the runtime lets a shell evaluate the caller's words.
if [ -z "$SINGULARITY_NO_EVAL" ]; then
    words=
    for word in "$@"; do words="$words \\"$word\\""; done
    eval "set -- $words"
fi
# The caller's words replace the image's command, not its entry point.
if [ $# -eq 0 ]; then eval "set -- $OCI_CMD"; fi
eval "set -- $OCI_ENTRYPOINT \\"\\$@\\""
exec "$@"
"""


def nodes(config: OciConfig, labels: Mapping[str, str], definition: str) -> tuple[Node, ...]:
    """Return all files and folders to add to the squashfs, each folder before its content.

    toolkit replaces ``.singularity.d``, empties the files in :data:`EMPTY`, and leaves all other files of the
    image unchanged.
    """
    folders = (*KERNEL_FOLDERS, *_FOLDERS, ROOT, f"{ROOT}/actions", f"{ROOT}/env", f"{ROOT}/libs")
    files = {
        **dict.fromkeys(EMPTY, (0o644, b"")),
        **{f"{ROOT}/{path}": (0o755, content) for path, content in scripts(config).items()},
        f"{ROOT}/Singularity": (0o644, definition.encode()),
        f"{ROOT}/labels.json": (0o644, json.dumps(dict(sorted(labels.items())), indent="\t").encode()),
    }
    return (
        *(Node(path, 0o755) for path in folders),
        *(Node(path, 0o1777) for path in _OPEN_FOLDERS),
        *(Node(path, mode, content=content) for path, (mode, content) in files.items()),
        *(Node(path, 0o777, target=f"{ROOT}/{target}") for path, target in _LINKS.items()),
    )


def scripts(config: OciConfig) -> dict[str, bytes]:
    """Return the content of each script in ``.singularity.d``, by the script's path in this folder."""
    folder = shipped_folder("containers") / "singularity.d"
    file_contents = {
        str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()
    }
    return file_contents | {
        "env/10-docker2singularity.sh": environment(config.Env).encode(),
        "runscript": runscript(config).encode(),
    }


def environment(variables: Iterable[str]) -> str:
    """Return the script that sets the image's variables.

    If the user's environment already sets a variable of the image, the script keeps the user's value. Only
    PATH always gets the image's value.
    """
    lines = ["#!/bin/sh"]
    for name, separator, value in (variable.partition("=") for variable in variables):
        if not _NAME.fullmatch(name):
            continue  # a shell cannot set a variable with this name
        if not separator:
            lines.append(f'export {name}="${{{name}:-}}"')
        elif name == "PATH":
            lines.append(f'export {name}="{_escaped(value)}"')
        else:
            lines.append(f'export {name}="${{{name}:-"{_escaped(value)}"}}"')
    return "\n".join(lines) + "\n"


def runscript(config: OciConfig) -> str:
    """Return the script that starts the image's command.

    Apptainer starts a container in the user's current folder. If the image's command is relative to the
    image's working directory, the script contains the full path of the command.
    """
    entrypoint, command = _anchor_program(config.Entrypoint, config.WorkingDir), config.Cmd
    if not entrypoint:
        command = _anchor_program(command, config.WorkingDir)
    return _RUNSCRIPT.format(
        entrypoint=shlex.quote(_double_quoted(entrypoint)), command=shlex.quote(_double_quoted(command))
    )


def definition(image: str) -> str:
    """Return the definition that Apptainer would store in the SIF if it converted ``image``, an image of the
    Docker engine.
    """
    return f"bootstrap: docker-daemon\nfrom: {image}\n\n"


def labels(config: OciConfig, image: str, architecture: str, epoch: int, packing: str) -> dict[str, str]:
    """Return the labels of a SIF: the image's labels, the labels that Apptainer adds, and :data:`PACKING`.

    ``architecture`` is Go's name of the architecture, such as ``amd64``. ``epoch`` is the build time in Unix
    seconds. ``packing`` is the name of the SIF's compression, such as ``default``.
    """
    when = datetime.fromtimestamp(epoch, UTC)
    schema, source = "org.label-schema", "org.label-schema.usage.singularity.deffile"
    return {
        **config.Labels,
        f"{schema}.build-arch": architecture,
        f"{schema}.build-date": f"{when:%A}_{when.day}_{when:%B}_{when.year}_{when:%H:%M:%S}_UTC",
        f"{schema}.schema-version": "1.0",
        f"{source}.bootstrap": "docker-daemon",
        f"{source}.from": image,
        PACKING: packing,
    }


PACKING = "toolkit.sif.for"
"""The name of the label that says which compression in ``packing.py`` toolkit used for the SIF."""


def metadata(config: OciConfig, labels: Mapping[str, str], definition: str) -> bytes:
    """Return the JSON that ``apptainer inspect`` prints (apptainer: pkg/inspect)."""
    file_contents = scripts(config)

    def text(path: str) -> str:
        return file_contents[path].decode().rstrip("\n")

    shown = ("env/10-docker2singularity.sh", "env/90-environment.sh")
    attributes = {
        "environment": {f"/{ROOT}/{path}": text(path) for path in shown},
        "labels": dict(sorted(labels.items())),
        "runscript": text("runscript"),
        "deffile": definition.rstrip("\n"),
        "startscript": text("startscript"),
    }
    return msgspec.json.encode({"data": {"attributes": attributes}, "type": "container"})


def _anchor_program(words: tuple[str, ...], folder: str) -> tuple[str, ...]:
    if not words or "/" not in words[0] or not folder:
        return words
    return (str(PurePosixPath(folder) / words[0]), *words[1:])


def _double_quoted(words: Iterable[str]) -> str:
    return " ".join(f'"{_escaped(word)}"' for word in words)


def _escaped(text: str) -> str:
    """Return a text with a backslash before each character that is special in a shell's double quotes."""
    return re.sub(r'([\\"`$])', r"\\\1", text)
