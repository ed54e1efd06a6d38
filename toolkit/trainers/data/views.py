"""Crop images. Test images are cropped to the centre. Training images are cropped at random, in a different
way in each epoch.

The random crop of a sample depends on a seed, the number of the epoch, and the sample's number. In a given
epoch, a sample has the same random crop on every rank, with any number of ranks, and in a resumed training.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

COLOURS = 3
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG"
_CENTRE = 0.875
"""The side of the centre crop as a share of the image's shorter side: 224 / 256, as usual for ImageNet."""

_AREA, _ASPECT, _TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10
"""The ranges of a random crop's area (a share of the image) and aspect ratio (width / height), and the number
of tries to find such a crop (Szegedy et al. 2015, arXiv:1409.4842, section 6).
"""


def turn_and_sample(number: "tf.Tensor", count: int) -> "tuple[tf.Tensor, tf.Tensor]":
    """Return the epoch and the sample, both counted from 0, to which ``number`` belongs. ``number`` counts
    the samples of all epochs from 0, and an epoch has ``count`` samples.

    >>> turn_and_sample(7, 5)
    (1, 2)
    """
    return number // count, number % count


def draw(seed: int, epoch: "tf.Tensor", sample: "tf.Tensor") -> "tf.Tensor":
    """Return the seed of the random crop and flip of a sample in an epoch. ``sample`` and ``epoch`` are the
    numbers of the sample and the epoch. The returned seed consists of two int32 numbers.
    """
    import tensorflow as tf

    fold = tf.random.experimental.stateless_fold_in
    return fold(fold(tf.constant([seed, 0]), tf.cast(epoch, tf.int32)), tf.cast(sample, tf.int32))


def random_view(
    content: "tf.Tensor",
    side: int,
    seed: int | None,
    epoch: "tf.Tensor",
    sample: "tf.Tensor",
    name: "tf.Tensor",
) -> "tf.Tensor":
    """Return a crop with ``side`` x ``side`` pixels of the image file whose bytes are ``content``. If
    ``seed`` is ``None``, return the centre crop. Otherwise, return the random crop of the sample with the
    number ``sample`` in the epoch with the number ``epoch``.

    If ``content`` is neither a JPEG nor a PNG, TensorFlow raises an error whose message starts with ``name``.
    """
    import tensorflow as tf

    png = tf.strings.substr(content, 0, len(_PNG)) == _PNG
    known = tf.io.is_jpeg(content) | png
    strange = tf.debugging.Assert(known, [tf.strings.join([name, " is neither a JPEG nor a PNG image"])])
    with tf.control_dependencies([strange] if strange is not None else []):
        content = tf.identity(content)
    return centre(content, side) if seed is None else part(content, side, draw(seed, epoch, sample))


def fault(content: bytes, name: str) -> str:
    """Return an empty string if TensorFlow can decode the JPEG or PNG ``content``. Otherwise, return
    an error message that starts with ``name``.
    """
    import tensorflow as tf

    if not content.startswith((_JPEG, _PNG)):
        return f"{name} is neither a JPEG nor a PNG image"
    decode = tf.io.decode_png if content.startswith(_PNG) else tf.io.decode_jpeg
    try:
        decode(content, COLOURS)
    except tf.errors.InvalidArgumentError:
        return f"{name}: cannot be decoded: the image is incomplete or damaged; replace the image"
    return ""


def centre(content: "tf.Tensor", side: int) -> "tf.Tensor":
    """Return the centre crop of a JPEG or PNG as an array of bytes with the shape (side, side, 3)."""
    import tensorflow as tf

    def window(shape: "tf.Tensor") -> "tf.Tensor":
        shorter = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
        part = tf.maximum(tf.cast(tf.round(shorter * _CENTRE), tf.int32), 1)
        return tf.stack([(shape[0] - part) // 2, (shape[1] - part) // 2, part, part])

    return _resize(_crop(content, window), side)


def part(content: "tf.Tensor", side: int, seeds: "tf.Tensor") -> "tf.Tensor":
    """Return a random crop of a JPEG or PNG as an array of bytes with the shape (side, side, 3). Flip the
    crop horizontally with a probability of 1/2.
    """
    import tensorflow as tf

    def window(shape: "tf.Tensor") -> "tf.Tensor":
        begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
            shape,
            tf.zeros((1, 0, 4)),
            seeds,
            min_object_covered=0.0,
            aspect_ratio_range=_ASPECT,
            area_range=_AREA,
            max_attempts=_TRIES,
            use_image_if_no_bounding_boxes=True,
        )
        return tf.concat([begin[:2], size[:2]], 0)

    return _mirror(_resize(_crop(content, window), side), seeds)


def _crop(content: "tf.Tensor", window: "Callable[[tf.Tensor], tf.Tensor]") -> "tf.Tensor":
    """Return a part of an image as pixels. ``window`` is a function that returns the part's top, left, height
    and width for the image's shape. If the image is a JPEG, decode only this part.
    """
    import tensorflow as tf

    def jpeg() -> "tf.Tensor":
        return tf.image.decode_and_crop_jpeg(content, window(tf.io.extract_jpeg_shape(content)), COLOURS)

    def other() -> "tf.Tensor":
        image = tf.io.decode_png(content, COLOURS)
        top, left, height, width = tf.unstack(window(tf.shape(image)))
        return image[top : top + height, left : left + width]

    return tf.cond(tf.io.is_jpeg(content), jpeg, other)


def _resize(image: "tf.Tensor", side: int) -> "tf.Tensor":
    import tensorflow as tf

    exact = tf.image.resize(image, (side, side))
    return tf.ensure_shape(tf.cast(tf.round(exact), tf.uint8), (side, side, COLOURS))


def _mirror(image: "tf.Tensor", seeds: "tf.Tensor") -> "tf.Tensor":
    """Flip the image horizontally with a probability of 1/2, independently of its random crop."""
    import tensorflow as tf

    chance = tf.random.stateless_uniform((), tf.random.experimental.stateless_fold_in(seeds, 1))
    return tf.where(chance < 0.5, tf.reverse(image, [1]), image)
