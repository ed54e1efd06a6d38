"""Read idx files, the array format of MNIST and related data sets. For a damaged file, the functions raise an
error with a one-line message.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy

_UNSIGNED_BYTES = 0x08
"""The third byte of an idx file that contains unsigned bytes. MNIST-like data sets use no other type."""

FIX = "download the files again with `toolkit data get NAME` (NAME is the data set, such as mnist)"


def shape(path: Path, dimensions: int) -> tuple[int, ...]:
    """Return the shape of the array in an idx file, from the file's header. Check that the file has the size
    that follows from this shape.

    Raises:
        Trouble: if the file is missing, is not an idx file with ``dimensions`` dimensions, or has a wrong
        size.
    """
    header = 4 + 4 * dimensions
    try:
        with path.open("rb") as file:
            start = file.read(header)
        size = path.stat().st_size
    except FileNotFoundError:
        raise Trouble(f"{path}: no such file; {FIX}") from None
    except OSError as error:
        raise Trouble(f"{path}: cannot be read: {error.strerror}") from None
    if start[:4] != bytes((0, 0, _UNSIGNED_BYTES, dimensions))[: len(start)] or not start:
        found = start[:4].hex() or "nothing"
        raise Trouble(
            f"{path}: not an idx file with a {dimensions}-dimensional array of bytes: "
            f"its first bytes are {found}; {FIX}"
        )
    sizes = tuple(int.from_bytes(start[i : i + 4], "big") for i in range(4, header, 4))
    if size != header + math.prod(sizes) or len(start) < header:
        wanted = (
            f"its header requires {header + math.prod(sizes)} bytes"
            if len(start) == header
            else f"an idx header alone has {header} bytes"
        )
        raise Trouble(f"{path}: the file has {size} bytes, but {wanted}; {FIX}")
    return sizes


def read(path: Path, dimensions: int) -> "numpy.ndarray":
    """Return the array of unsigned bytes in an idx file with ``dimensions`` dimensions."""
    import numpy as np

    sizes = shape(path, dimensions)
    return np.fromfile(path, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(sizes)
