"""Check a new SIF by reading all its folders. Find out whether this machine can start containers."""

import os
from pathlib import Path

from toolkit.errors import CheckFailed, Missing
from toolkit.image.files import tree as files
from toolkit.image.files.bounded import Budget
from toolkit.image.files.sif.siffile import read_sif
from toolkit.image.files.sif.squash import SquashTree
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

_FUSE = "/dev/fuse"
_NEEDED = ("/bin/sh", "/.singularity.d/actions/exec")
"""The files in a SIF that a container runtime needs to start a command."""
_READ = (*_NEEDED, "/etc/os-release", "/.singularity.d/labels.json")
_ASK_SECONDS = 10.0
_LOOKS = 20_000_000
"""Maximum number of path lookups in a new SIF. The maximum is higher than for images of users, because
toolkit reads all folders of a new SIF, and can trust a SIF that it has just written.
"""


def read_through(sif: Path, required_files: tuple[str, ...] = ()) -> None:
    """Read every folder of a SIF, the files that a runtime needs to start a command, and the files in
    ``required_files``.

    Raises:
        CheckFailed: if a required file is missing or empty, or the squashfs in the SIF is damaged.
    """
    with sif.open("rb") as file:
        tree = SquashTree(file, read_sif(file, sif).root.offset, sif.name, Budget(sif.name, looks=_LOOKS))
        waiting = ["/"]
        while waiting:
            folder = waiting.pop()
            paths = [f"{folder.rstrip('/')}/{name}" for name in tree.names(folder)]
            waiting += [path for path in paths if tree.kind(path) == "folder"]
        for path in dict.fromkeys((*_READ, *required_files)):
            if not files.read(tree, path) and path in {*_NEEDED, *required_files}:
                raise CheckFailed(
                    f"{sif.name}: toolkit wrote the SIF, but {path} in the SIF is missing or empty"
                )


def start_obstacle() -> str:
    """Return the reason why this machine cannot start containers. Return an empty text if toolkit finds no
    reason.
    """
    if not os.access(_FUSE, os.R_OK | os.W_OK):
        return f"{_FUSE} is missing or not accessible, so no container runtime can mount a SIF"
    words = ("unshare", "--user", "--map-root-user", "--mount", "true")
    try:
        result = LocalRunner().run(Command(words, timeout=_ASK_SECONDS))
    except Missing:  # without the program ``unshare``, toolkit cannot test namespaces
        return ""
    return "" if result.ok else f"this machine does not allow user namespaces: {result.errors.strip()}"
