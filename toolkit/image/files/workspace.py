"""Temporary files with the process id of their owner, so that files of a dead process can be removed."""

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
    """Return the folder for large temporary files: ``APPTAINER_TMPDIR``, ``SINGULARITY_TMPDIR``,
    ``TMPDIR``.
    """
    for variable in ("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR"):
        if chosen := os.environ.get(variable):
            return Path(chosen)
    return Path(tempfile.gettempdir())


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Create a folder under :func:`temporary_root`, and always remove it."""
    root = temporary_root()
    if not root.is_dir():
        raise CheckFailed(
            f"the temporary folder {root} does not exist",
            fix="create the folder, or set TMPDIR to another folder",
        )
    remove_stale(root, rf"{re.escape(_FOLDER)}{_owner_pattern()}\..+")
    made = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{_owner()}.", dir=root))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Return a hidden name in the folder of ``target``; a file left under it is removed."""
    remove_stale(target.parent, rf"{re.escape(f'.{target.name}.')}{_owner_pattern()}\.part")
    part = target.with_name(f".{target.name}.{_owner()}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def remove_stale(root: Path, pattern: str) -> None:
    """Remove matches of ``pattern`` in ``root`` whose process, the group ``pid``, no longer exists."""
    for path in root.iterdir():
        found = re.fullmatch(pattern, path.name)
        # On a shared folder only the machine that ran the process can check whether it still runs.
        if not found or found["host"] != host() or is_running(int(found["pid"])):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def require_space(where: Path, needed: int, what: str, fix: str) -> None:
    """Raise unless ``where`` has ``needed`` bytes free.

    Raises:
        CheckFailed: with both figures.
    """
    free = shutil.disk_usage(where).free
    if free < needed:
        raise CheckFailed(
            f"{where} has {format_size(free)} free, and {what} needs at least {format_size(needed)}", fix=fix
        )


def _owner() -> str:
    return f"{host()}.{os.getpid()}"


def _owner_pattern() -> str:
    return r"(?P<host>[^.]+)\.(?P<pid>\d+)"
