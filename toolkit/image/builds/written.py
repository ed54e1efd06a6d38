"""Write a folder from which ``docker build`` or ``apptainer build`` builds an image on another machine."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from toolkit.errors import BadInput, CheckFailed
from toolkit.folders import behind_links
from toolkit.image.builds.based import context_of_base
from toolkit.image.builds.context import whole_context
from toolkit.image.builds.emit import Making, definition, dockerfile
from toolkit.image.builds.identity import labels
from toolkit.model.progress import Tell
from toolkit.run.docker.engine import Files
from toolkit.run.folders import would_take

DEFINITION = "Singularity.def"


def write_folder(
    making: Making, files: Mapping[str, Path], folder: Path, *, singularity: bool, jobs: int, tell: Tell
) -> Path:
    """Write a folder with all files of a build; return the path of its Dockerfile or definition file.

    If ``singularity`` is true, toolkit writes an Apptainer definition file instead of a Dockerfile; ``jobs``
    is the number of parallel compilers in this definition file. ``files`` maps the SHA-256 of each file in
    the lock to the file's path.

    toolkit writes all files to a temporary folder, and then moves them to ``folder``. If ``folder`` exists
    and is empty, toolkit keeps this folder, because it may be the working directory of a shell.

    Raises:
        BadInput: under the same conditions as :func:`new_folder`.
        CheckFailed: if toolkit cannot write to the folder.
    """
    real = new_folder(folder)
    text = (
        definition(making, labels(making), context=f"{real}/", jobs=jobs)
        if singularity
        else dockerfile(making)
    )
    name = DEFINITION if singularity else "Dockerfile"
    part = (real if real.is_dir() else real.parent) / f".{real.name}.{os.getpid()}.part"
    tell.step(f"Writing {folder}")
    try:
        base = context_of_base(making.lock, files, archive=singularity)
        _write_files({name: text.encode(), **whole_context(making, files), **base}, part)
        _settle(part, real)
    except OSError as error:
        raise CheckFailed(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder / name


def new_folder(folder: Path) -> Path:
    """Check that a folder is new or empty, and return its path with all links resolved. Do not create the
    folder.

    Raises:
        BadInput: if the path is a file, the folder is not empty, or toolkit cannot write to the folder.
    """
    real = behind_links(folder)
    if real.exists() and not real.is_dir():
        raise BadInput(f"-o: {folder} is a file", fix="name a new folder")
    would_take(real, "-o")
    if real.exists() and any(real.iterdir()):
        raise BadInput(f"-o: {folder} is not empty", fix="name a new folder")
    return real


def _settle(part: Path, folder: Path) -> None:
    """Rename the temporary folder ``part`` to ``folder``. If ``folder`` exists, move the contents of ``part``
    into it instead.
    """
    if not folder.is_dir():
        part.replace(folder)
        return
    for path in tuple(part.iterdir()):
        path.replace(folder / path.name)


def _write_files(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            shutil.copyfile(content, path)
