"""Check that a container runtime can start an image file."""

from pathlib import Path

from toolkit.errors import BadInput
from toolkit.files import open_given
from toolkit.image.files.bounded import Budget
from toolkit.image.files.reference import sif_command
from toolkit.image.files.sif.siffile import is_sif, read_sif
from toolkit.image.files.sif.squash import SquashTree
from toolkit.runtime import formats, runtime_of_name

STARTABLE_FORMATS = runtime_of_name("").FORMATS
"""The image formats that Apptainer can start."""

_HEAD = 512
_SQUASHFS = b"hsqs"


def check_startable(path: Path, option: str) -> None:
    """Check that the format of an image file is one that a supported container runtime can start.

    For a SIF or a squashfs image, toolkit reads only the file's header.

    Args:
        path: the image file.
        option: the command-line option with which the user names the image, such as ``--image``. The error
            message begins with this option.

    Raises:
        BadInput: if the path is not a file, the file is not an image, or no supported runtime can start an
            image in this format.
        Damaged: if the SIF's descriptor table or the squashfs superblock is invalid.
    """
    with open_given(path, label=option) as file:
        head = file.read(_HEAD)
        if is_sif(head) or head.startswith(_SQUASHFS):
            offset = read_sif(file, path).root.offset if is_sif(head) else 0
            SquashTree(file, offset, str(path), Budget(str(path)))
            return
    from toolkit.image.inspect import inspect  # slow import, not needed for SIF and squashfs

    facts = inspect(path)
    if facts.format in formats():
        return
    raise BadInput(
        f"{option} {path}: the format of this image is {facts.format}; a job needs a SIF",
        fix=f"make a SIF: `{sif_command(facts)}`",
    )
