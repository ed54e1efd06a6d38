"""Images in a folder for each class: ``DIR/train/CLASS/*.jpg`` and ``DIR/val/CLASS/*.jpg``, JPEG or PNG.

Classes are numbered in the order of the folder names in ``train``. Each file is read by its number when a
step needs it, so files are assigned to ranks like samples in memory.
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
    """Images of ``side`` x ``side`` pixels: with a seed a random crop, different in each turn; without a seed
    the centre.
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
        """Return one image and its class; ``number`` keeps increasing in later turns."""
        import tensorflow as tf

        turn, sample = views.turn_and_sample(number, self._count)
        path = self._paths[sample]
        image = views.random_view(tf.io.read_file(path), self._side, self._seed, turn, sample, path)
        return image, self._classes[sample]

    def fault(self, sample: int) -> str:
        """Return the fault of one file; empty for a good file."""
        path = self._names[sample]
        try:
            return views.fault(Path(path).read_bytes(), path)
        except OSError as error:
            return f"{path}: cannot be read: {error.strerror}"


def check(folder: Path) -> None:
    """Check that the folder has classes for training and the same classes for testing.

    Raises:
        Trouble: naming the folder that is wrong.
    """
    known = _classes(folder / TRAIN)
    tested = _test(folder)
    strange = [name for name in _classes(tested) if name not in known]
    if strange:
        raise Trouble(f"{tested / strange[0]}: there is no class of that name in {folder / TRAIN}")


def list_images(folder: Path) -> tuple[tuple[list[str], list[int]], tuple[list[str], list[int]]]:
    """Return paths and classes of the images for training and for testing, in the same order on all ranks.

    Raises:
        Trouble: if the folder has no images.
    """
    known = _classes(folder / TRAIN)
    return _part(folder / TRAIN, known), _part(_test(folder), known)


def load(folder: Path, side: int = 224, seed: int = 1) -> tuple[Images, Images]:
    """Return the images for training, randomly cropped, and the images for testing, cropped to the centre."""
    train, test = list_images(folder)
    return Images(*train, side, seed), Images(*test, side)


def _part(folder: Path, known: Sequence[str]) -> tuple[list[str], list[int]]:
    paths, classes = [], []
    for number, name in enumerate(known):
        found = sorted(_images(folder / name))
        paths += found
        classes += [number] * len(found)
    if not paths:
        raise Trouble(f"{folder}: holds no images ({', '.join(_ENDINGS)}) in its class folders")
    return paths, classes


def _images(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.path for entry in entries if _is_image_name(entry.name))
    except FileNotFoundError:
        return  # a class without test images
    except OSError as error:
        raise Trouble(f"{folder}: cannot be read: {error.strerror}") from None


def _is_image_name(name: str) -> bool:
    """Return whether a file name is an image; macOS keeps files such as ``._1.jpg`` beside images."""
    return name[0] != "." and name.lower().endswith(_ENDINGS)


def _classes(folder: Path) -> list[str]:
    try:
        names = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")
    except FileNotFoundError:
        raise Trouble(f"{folder}: there is no such folder; it has to hold a folder for each class") from None
    except OSError as error:
        raise Trouble(f"{folder}: cannot be read: {error.strerror}") from None
    if not names:
        raise Trouble(f"{folder}: holds no folders; it has to hold one for each class")
    return names


def _test(folder: Path) -> Path:
    for name in TESTS:
        if (folder / name).is_dir():
            return folder / name
    raise Trouble(f"{folder}: has none of the folders {', '.join(TESTS)}; one must hold the test images")
