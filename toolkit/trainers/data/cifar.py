"""Read the binary version of CIFAR-10. Each image is a record of 3,073 bytes: one byte with the class, then
all red, all green and all blue values of the image.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.trainers.data.sources import Samples
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy

SIDE = 32
COLOURS = 3
CLASSES = 10
_RECORD = 1 + COLOURS * SIDE * SIDE
_TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST = ("test_batch.bin",)
_FIX = "fetch the files again with: toolkit data get cifar10"


def check(folder: Path) -> None:
    """Check the sizes of the six files of CIFAR-10.

    Raises:
        Trouble: if a file is missing, unreadable or empty, or its size is not a multiple of a record's size.
            The message names the file.
    """
    for name in (*_TRAIN, *_TEST):
        path = folder / name
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise Trouble(f"{path}: no such file; {_FIX}") from None
        except OSError as error:
            raise Trouble(f"{path}: cannot be read: {error.strerror}") from None
        if not size or size % _RECORD:
            raise Trouble(f"{path}: the file has {size} bytes, which is not a multiple of {_RECORD}; {_FIX}")


def load(folder: Path) -> tuple[Samples, Samples]:
    """Return 50,000 training and 10,000 test samples: images of 32 x 32 x 3 bytes and their classes."""
    return _samples(folder, _TRAIN), _samples(folder, _TEST)


def _samples(folder: Path, names: tuple[str, ...]) -> Samples:
    import numpy as np

    records = np.concatenate([_records(folder / name) for name in names])
    planes = records[:, 1:].reshape(-1, COLOURS, SIDE, SIDE)
    # The models need the three colour values of a pixel next to each other. Reordering all images once is
    # faster than reordering a batch in each training step.
    return Samples(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0].copy())


def _records(path: Path) -> "numpy.ndarray":
    import numpy as np

    records = np.fromfile(path, np.uint8).reshape(-1, _RECORD)
    highest = records[:, 0].max()
    if highest >= CLASSES:
        raise Trouble(
            f"{path}: the file contains the class {highest}, but the last class is {CLASSES - 1}; {_FIX}"
        )
    return records
