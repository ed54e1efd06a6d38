"""Write the folder that an image can be built from elsewhere: by ``docker build``, or by Apptainer."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from toolkit.errors import BadInput, CheckFailed
from toolkit.image.based import write_base
from toolkit.image.context import whole_context
from toolkit.image.dockerarchive import write_archive
from toolkit.image.emit import Making, definition, dockerfile
from toolkit.image.identity import labels
from toolkit.model.progress import Tell

DEFINITION = "Singularity.def"


def write_folder(
    making: Making, files: Mapping[str, Path], folder: Path, *, singularity: bool, jobs: int, tell: Tell
) -> Path:
    """Write a new folder with the text and all that it needs, and return the text's file.

    Raises:
        BadInput: if there is something of that name.
        CheckFailed: if it cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"-o: {folder} is not empty", fix="name a new folder")
    text = (
        definition(making, labels(making), context=f"{folder.resolve()}/", jobs=jobs)
        if singularity
        else dockerfile(making)
    )
    target = folder / (DEFINITION if singularity else "Dockerfile")
    tell.step(f"Writing {folder}")
    try:
        for name, content in whole_context(making, files).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                shutil.copyfile(content, path)
        if not making.lock.base.published:
            _write_base(making, files, folder / "base.tar", tell, archive=singularity)
        target.write_text(text, "utf-8")
    except OSError as error:
        raise CheckFailed(f"{folder} cannot be written: {error.strerror or error}") from error
    return target


def _write_base(
    making: Making, files: Mapping[str, Path], target: Path, tell: Tell, *, archive: bool
) -> None:
    if not archive:
        write_base(making.lock, files, target, tell)
        return
    layer = target.with_name(".base.tar")
    try:
        write_base(making.lock, files, layer, tell)
        write_archive(layer, making.lock.solution.architecture, target)
    finally:
        layer.unlink(missing_ok=True)
