"""Read images from TFRecord files with ImageNet's usual names: ``DIR/train-00000-of-01024``,
``DIR/validation-…``.

A record is a ``tf.train.Example`` with two features. ``image/encoded`` is a JPEG or PNG.
``image/class/label`` is the label of the image's class. ImageNet's labels are 1 to 1000; 0 means "no class".

:mod:`toolkit.trainers.data.recordindex` finds each record by its number. toolkit shuffles the records of all
shards (TFRecord files) together, and uses each record once in a pass over the data. This module does not
verify the checksums of records.
"""

import os
import re
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.trainers.data import views
from toolkit.trainers.data.recordindex import HEAD, RecordIndex, index_records
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf

IMAGE, LABEL = "image/encoded", "image/class/label"
TRAIN = ("train",)
TESTS = ("validation", "val", "test")
_LARGEST = 2**31 - 1
"""The largest label that toolkit can use, because a training step stores class numbers as int32."""

_OTHERS = 256
"""The number of files that the process can still open after toolkit has opened all shards, if the hard limit
on open files permits.
"""

_SHARD = re.compile(r"(?P<part>[a-z]+)-(?P<number>\d+)-of-(?P<count>\d+)(\.tfrecord)?")


class Records:
    """TFRecord images as samples of ``side`` x ``side`` pixels. If ``seed`` is a number, each epoch uses a
    new random crop of each image. If ``seed`` is ``None``, each epoch uses the centre crop.

    ``first_label`` is the label of the first class. ``classes`` is the number of classes. If ``classes`` is
    ``None``, toolkit accepts each label from ``first_label`` to 2**31 - 1.
    """

    def __init__(
        self,
        index: RecordIndex,
        side: int,
        seed: int | None = None,
        first_label: int = 1,
        classes: int | None = None,
    ) -> None:
        self._index, self._side, self._seed, self._lowest = index, side, seed, first_label
        self._highest = _LARGEST if classes is None else first_label + classes - 1
        self._files = _open_shards(index.paths)

    def __len__(self) -> int:
        return len(self._index)

    def __del__(self) -> None:
        for file in getattr(self, "_files", ()):
            os.close(file)

    def read(self, sample: "numpy.ndarray") -> bytes:
        """Return the bytes of record number ``sample``, a serialised ``tf.train.Example``."""
        shard, offset, length = self._index.places[sample]
        return os.pread(self._files[shard], length, offset)

    def item(self, number: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Return one image and its class. With N samples, ``number`` N + 2 is sample 2 in the second
        epoch.
        """
        import tensorflow as tf

        turn, sample = views.turn_and_sample(number, len(self))
        # TensorFlow cannot read a record from the middle of a file, so Python reads it; see docs/data.md.
        record = tf.ensure_shape(tf.numpy_function(self.read, [sample], tf.string, stateful=False), ())
        found = tf.io.parse_single_example(record, features())
        name = tf.strings.join([f"{self._index.paths[0].parent}: record ", tf.strings.as_string(sample)])
        image = views.random_view(found[IMAGE], self._side, self._seed, turn, sample, name)
        return image, tf.cast(self._check_label(found[LABEL], name), tf.int32) - self._lowest

    def _check_label(self, label: "tf.Tensor", name: "tf.Tensor") -> "tf.Tensor":
        """Return ``label``, with a check in the TensorFlow graph. When TensorFlow runs the check, an invalid
        label raises an error that begins with ``name``. Without this check, an invalid label makes the loss
        NaN on a GPU.
        """
        import tensorflow as tf

        known = (label >= self._lowest) & (label <= self._highest)
        strange = tf.debugging.Assert(known, [name, "has no valid class: its label is", label])
        with tf.control_dependencies([strange] if strange is not None else []):
            return tf.identity(label)

    def fault(self, sample: int) -> str:
        """Return the reason why toolkit cannot use record number ``sample``. Return an empty string for a
        correct record.
        """
        import numpy as np
        import tensorflow as tf

        shard, offset, _ = self._index.places[sample]
        name = f"{self._index.paths[shard]}: the record at byte {offset - HEAD}"
        try:
            found = tf.io.parse_single_example(self.read(np.array(sample)), features())
        except OSError as error:
            return f"{name}: cannot be read: {error.strerror}"
        except tf.errors.InvalidArgumentError:
            return f"{name} is not a tf.train.Example with {IMAGE} and {LABEL}"
        strange = self.mislabelled(int(found[LABEL]))
        return views.fault(found[IMAGE].numpy(), name) or (f"{name}: {strange}" if strange else "")

    def mislabelled(self, label: int) -> str:
        """Return the reason why a label is not the label of a class, or an empty string for a valid label."""
        if label < self._lowest:
            return f"its label is {label}, but labels begin at {self._lowest}; renumber the labels"
        if label > self._highest:
            count = self._highest - self._lowest + 1
            classes = f"{count} class{'es' * (count > 1)}"
            return (
                f"its label is {label}, but the last of {classes} has the label {self._highest}; "
                "set --classes to the number of classes"
            )
        return ""


def _open_shards(paths: Sequence[Path]) -> list[int]:
    """Open all shards, and return their file descriptors. If this process's soft limit on open files is too
    low, first raise the soft limit.

    Raises:
        Trouble: if a shard cannot be opened, for example because the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(len(list(Path("/proc/self/fd").iterdir())) + len(paths) + _OTHERS, hard)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    files: list[int] = []
    try:
        for path in paths:
            files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))  # noqa: PERF401 - closed after an error
    except OSError as error:
        for file in files:
            os.close(file)
        raise Trouble(
            f"{error.filename}: cannot be opened after {len(files)} other shards: {error.strerror}"
        ) from None
    return files


def features() -> "dict[str, tf.io.FixedLenFeature]":
    """Return the names and types of the two features that a record must have."""
    import tensorflow as tf

    one = tf.io.FixedLenFeature
    return {IMAGE: one((), tf.string), LABEL: one((), tf.int64)}


def check(folder: Path) -> None:
    """Check that all shards exist and begin with a record.

    Raises:
        Trouble: if a shard is missing, unreadable, or does not begin with a record.
    """
    for part in (TRAIN, TESTS):
        for path in shards(folder, part):
            RecordIndex.begin(path)


def load(
    folder: Path, side: int = 224, seed: int = 1, first_label: int = 1, classes: int | None = None
) -> tuple[Records, Records]:
    """Return the training images, cropped at random, and the test images, cropped to the centre. For the
    arguments, see :class:`Records`.
    """
    train, test = (index_records(shards(folder, part)) for part in (TRAIN, TESTS))
    _look(train)
    return Records(train, side, seed, first_label, classes), Records(test, side, None, first_label, classes)


def shards(folder: Path, parts: tuple[str, ...]) -> list[Path]:
    """Return the shards of the training images or of the test images, in the order of their numbers.
    ``parts`` lists the names with which these shards may begin, such as ``validation`` and ``val``. If shards
    with several of these names exist, return only the shards whose name comes first in ``parts``.

    Raises:
        Trouble: if there are no shards, or a shard is missing.
    """
    found: dict[str, dict[int, Path]] = {}
    count: dict[str, int] = {}
    for path in sorted(folder.iterdir()):
        if (name := _SHARD.fullmatch(path.name)) and name["part"] in parts:
            part = name["part"]
            if count.setdefault(part, int(name["count"])) != int(name["count"]):
                raise Trouble(
                    f"{path}: the names of other {part} files have another number after `of`; keep the "
                    "shards of only one data set in the folder"
                )
            found.setdefault(part, {})[int(name["number"])] = path
    for part in parts:
        if part in found:
            for number in range(count[part]):
                if number not in found[part]:
                    first = next(iter(found[part].values()))
                    raise Trouble(
                        f"{folder}: shard {number} is missing; the name {first.name} says that there "
                        f"are shards 0 to {count[part] - 1}"
                    )
            return [found[part][number] for number in range(count[part])]
    raise Trouble(
        f"{folder}: the folder contains no TFRecord files with names such as {parts[0]}-00000-of-00100"
    )


def _look(index: RecordIndex) -> None:
    """Check that the first record has the expected features. Without this check, TensorFlow would print an
    error message of about a page.
    """
    import tensorflow as tf

    shard, offset, length = index.places[0]
    with index.paths[shard].open("rb") as file:
        record = os.pread(file.fileno(), length, offset)
    try:
        tf.io.parse_single_example(record, features())
    except tf.errors.InvalidArgumentError:
        raise Trouble(
            f"{index.paths[shard]}: its first record is not a tf.train.Example with {IMAGE} and {LABEL}"
        ) from None
