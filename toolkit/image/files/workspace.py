"""Create temporary files, and remove the temporary files of earlier processes that were interrupted.

The name of each temporary file contains the host and the process id of the process that created the file.
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import CheckFailed
from toolkit.run.owner import host, is_running
from toolkit.units import format_size

_FOLDER = "toolkit-sif."


def temporary_root() -> Path:
    """Return the folder in which toolkit creates large temporary files.

    The folder is the value of the first of these variables that is set: ``APPTAINER_TMPDIR``,
    ``SINGULARITY_TMPDIR``, ``TMPDIR``. If none of these variables is set, Python chooses the folder, usually
    ``/tmp``.
    """
    for variable in ("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR"):
        if chosen := os.environ.get(variable):
            return Path(chosen)
    return Path(tempfile.gettempdir())


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Create a temporary folder in :func:`temporary_root`, and remove it after use."""
    root = temporary_root()
    if not root.is_dir():
        raise CheckFailed(
            f"the temporary folder {root} does not exist",
            fix="create the folder, or set APPTAINER_TMPDIR to another folder",
        )
    remove_stale(root, rf"{re.escape(_FOLDER)}{_owner_pattern()}\..+")
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{_owner()}.", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Yield the path of a hidden temporary file in the folder of ``target``. The caller creates the file.
    At the end of the ``with`` block, toolkit removes the file if it still exists.
    """
    remove_stale(target.parent, rf"{re.escape(f'.{target.name}.')}{_owner_pattern()}\.part")
    part = target.with_name(f".{target.name}.{_owner()}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def remove_stale(root: Path, pattern: str) -> None:
    """Remove each file or folder in ``root`` whose name matches ``pattern``, if the process that created it
    ran on this host and has exited.

    The groups ``host`` and ``pid`` of the pattern identify the process that created the file or folder.
    """
    for path in root.iterdir():
        match = re.fullmatch(pattern, path.name)
        # In a shared folder, keep the files of other hosts: this machine cannot check their processes.
        if not match or match["host"] != host() or is_running(int(match["pid"])):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def require_space(path: Path, size: int, subject: str, fix: str) -> None:
    """Raise an error if the disk with the file or folder ``path`` has fewer than ``size`` free bytes.

    Raises:
        CheckFailed: if the disk has too little space. The message has the free and the needed size, and says
            that ``subject`` (for example "the SIF") needs the space.
    """
    free = shutil.disk_usage(path).free
    if free < size:
        raise CheckFailed(
            f"{path} has {format_size(free)} free, and {subject} needs at least {format_size(size)}", fix=fix
        )


def _owner() -> str:
    return f"{host()}.{os.getpid()}"


def _owner_pattern() -> str:
    return r"(?P<host>[^.]+)\.(?P<pid>\d+)"
