"""Read JPEG or PNG images from one folder per class: ``DIR/train/CLASS/*.jpg`` and ``DIR/val/CLASS/*.jpg``.

toolkit numbers the classes from 0, in the alphabetical order of the class folders in ``train``. Each image
file is a sample with a number. :mod:`toolkit.trainers.data.shares` assigns sample numbers to ranks.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.trainers.data import views
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import tensorflow as tf

TRAIN = "train"
TESTS = ("val", "validation", "test")
_ENDINGS = (".jpg", ".jpeg", ".png")


class Images:
    """Image files as samples of ``side`` x ``side`` pixels. If ``seed`` is a number, each epoch uses a new
    random crop of each image. If ``seed`` is ``None``, each epoch uses the centre crop.
    """

    def __init__(
        self, paths: Sequence[str], classes: Sequence[int], side: int, seed: int | None = None
    ) -> None:
        import tensorflow as tf

        self._count, self._side, self._seed = len(paths), side, seed
        self._names = paths
        with tf.device("/CPU:0"):
            self._paths, self._classes = tf.constant(paths), tf.constant(classes, tf.int32)

    def __len__(self) -> int:
        return self._count

    def item(self, number: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return one image and its class. With N samples, ``number`` N + 2 is sample 2 in the second
        epoch.
        """
        import tensorflow as tf

        turn, sample = views.turn_and_sample(number, self._count)
        path = self._paths[sample]
        image = views.random_view(tf.io.read_file(path), self._side, self._seed, turn, sample, path)
        return image, self._classes[sample]

    def fault(self, sample: int) -> str:
        """Return the reason why the image file of a sample cannot be read or decoded. Return an empty string
        for a correct file.
        """
        path = self._names[sample]
        try:
            return views.fault(Path(path).read_bytes(), path)
        except OSError as error:
            return f"{path}: cannot be read: {error.strerror}"


def check(folder: Path) -> None:
    """Check that ``folder`` has class folders for training and for tests. Check that each test class is also
    a training class.

    Raises:
        Trouble: if a folder is missing, unreadable or empty, or a test class is unknown.
    """
    known = _classes(folder / TRAIN)
    tested = _test(folder)
    strange = [name for name in _classes(tested) if name not in known]
    if strange:
        raise Trouble(
            f"{tested / strange[0]}: {folder / TRAIN} has no class of this name; add the folder "
            f"{strange[0]} to {TRAIN}, or remove the folder {strange[0]} from {tested.name}"
        )


def list_images(folder: Path) -> tuple[tuple[list[str], list[int]], tuple[list[str], list[int]]]:
    """Return the paths and class numbers of the training images and of the test images. The order of the
    images is the same on all ranks.

    Raises:
        Trouble: if there are no training images or no test images.
    """
    known = _classes(folder / TRAIN)
    return _part(folder / TRAIN, known), _part(_test(folder), known)


def load(folder: Path, side: int = 224, seed: int = 1) -> tuple[Images, Images]:
    """Return the training images, cropped at random, and the test images, cropped to the centre. Each crop
    has ``side`` x ``side`` pixels.
    """
    train, test = list_images(folder)
    return Images(*train, side, seed), Images(*test, side)


def _part(folder: Path, class_names: Sequence[str]) -> tuple[list[str], list[int]]:
    paths, classes = [], []
    for number, name in enumerate(class_names):
        found = sorted(_images(folder / name))
        paths += found
        classes += [number] * len(found)
    if not paths:
        raise Trouble(f"{folder}: the class folders contain no images ({', '.join(_ENDINGS)})")
    return paths, classes


def _images(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.path for entry in entries if _is_image_name(entry.name))
    except FileNotFoundError:
        return  # The class has no test images.
    except OSError as error:
        raise Trouble(f"{folder}: cannot be read: {error.strerror}") from None


def _is_image_name(name: str) -> bool:
    """Return whether ``name`` is the name of an image file. Files of macOS such as ``._1.jpg`` are not
    images.
    """
    return name[0] != "." and name.lower().endswith(_ENDINGS)


def _classes(folder: Path) -> list[str]:
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")
    except FileNotFoundError:
        raise Trouble(f"{folder}: no such folder; create it, with a subfolder for each class") from None
    except OSError as error:
        raise Trouble(f"{folder}: cannot be read: {error.strerror}") from None
    if not names:
        raise Trouble(f"{folder}: the folder contains no folders; create a folder for each class")
    return names


def _test(folder: Path) -> Path:
    for name in TESTS:
        if (folder / name).is_dir():
            return folder / name
    raise Trouble(
        f"{folder}: none of the folders {', '.join(TESTS)} exists; create one of these folders, with a "
        "folder of test images for each class"
    )
