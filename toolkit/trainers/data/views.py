"""How an image is seen: its centre when a network is tested, another part of it each time that it trains.

What is random is drawn from a seed, the turn in which a sample is seen, and its number. So it is the same
wherever the sample is seen: on any rank of a world of any size, and once more after a stop.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

COLOURS = 3
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG"
_CENTRE = 0.875
"""Side of the centre that is seen, of the shorter side: 224 of 256 pixels, as in most work on ImageNet."""

_AREA, _ASPECT, _TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10
"""Of the part that is seen in training: Szegedy et al. 2015, arXiv:1409.4842, section 6."""


def turn_and_sample(number: "tf.Tensor", count: int) -> "tuple[tf.Tensor, tf.Tensor]":
    """Return what a number stands for: one of ``count`` samples, and how often all were seen before it.

    >>> turn_and_sample(7, 5)
    (1, 2)
    """
    return number // count, number % count


def draw(seed: int, turn: "tf.Tensor", sample: "tf.Tensor") -> "tf.Tensor":
    """Return the two numbers from which all that is random about a sample follows."""
    import tensorflow as tf

    fold = tf.random.experimental.stateless_fold_in
    return fold(fold(tf.constant([seed, 0]), tf.cast(turn, tf.int32)), tf.cast(sample, tf.int32))


def seen(
    encoded: "tf.Tensor",
    side: int,
    seed: int | None,
    turn: "tf.Tensor",
    sample: "tf.Tensor",
    name: "tf.Tensor",
) -> "tf.Tensor":
    """Return a part of a JPEG or PNG if there is a seed to choose it by, and else its centre.

    ``name`` is that of an image that is neither, for the error.
    """
    import tensorflow as tf

    png = tf.strings.substr(encoded, 0, len(_PNG)) == _PNG
    known = tf.io.is_jpeg(encoded) | png
    strange = tf.debugging.Assert(known, [tf.strings.join([name, ": is neither JPEG nor PNG"])])
    with tf.control_dependencies([strange] if strange is not None else []):
        encoded = tf.identity(encoded)
    return centre(encoded, side) if seed is None else part(encoded, side, draw(seed, turn, sample))


def fault(encoded: bytes, name: str) -> str:
    """Say what keeps an image from being seen, beginning with its name; empty if nothing does."""
    import tensorflow as tf

    if not encoded.startswith((_JPEG, _PNG)):
        return f"{name}: is neither JPEG nor PNG"
    decode = tf.io.decode_png if encoded.startswith(_PNG) else tf.io.decode_jpeg
    try:
        decode(encoded, COLOURS)
    except tf.errors.InvalidArgumentError:
        return f"{name}: cannot be decoded: the image is cut short or damaged; put a whole one in its place"
    return ""


def centre(encoded: "tf.Tensor", side: int) -> "tf.Tensor":
    """Return the middle of a JPEG or PNG as bytes of (side, side, 3)."""
    import tensorflow as tf

    def window(shape: "tf.Tensor") -> "tf.Tensor":
        shorter = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
        part = tf.maximum(tf.cast(tf.round(shorter * _CENTRE), tf.int32), 1)
        return tf.stack([(shape[0] - part) // 2, (shape[1] - part) // 2, part, part])

    return _resized(_cropped(encoded, window), side)


def part(encoded: "tf.Tensor", side: int, seeds: "tf.Tensor") -> "tf.Tensor":
    """Return some part of a JPEG or PNG, perhaps mirrored, as bytes of (side, side, 3)."""
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

    return _mirrored(_resized(_cropped(encoded, window), side), seeds)


def _cropped(encoded: "tf.Tensor", window: "Callable[[tf.Tensor], tf.Tensor]") -> "tf.Tensor":
    """Decode what lies in a window (top, left, height, width) of the image's shape; of a JPEG, no more."""
    import tensorflow as tf

    def jpeg() -> "tf.Tensor":
        return tf.image.decode_and_crop_jpeg(encoded, window(tf.io.extract_jpeg_shape(encoded)), COLOURS)

    def other() -> "tf.Tensor":
        image = tf.io.decode_png(encoded, COLOURS)
        top, left, height, width = tf.unstack(window(tf.shape(image)))
        return image[top : top + height, left : left + width]

    return tf.cond(tf.io.is_jpeg(encoded), jpeg, other)


def _resized(image: "tf.Tensor", side: int) -> "tf.Tensor":
    import tensorflow as tf

    exact = tf.image.resize(image, (side, side))
    return tf.ensure_shape(tf.cast(tf.round(exact), tf.uint8), (side, side, COLOURS))


def _mirrored(image: "tf.Tensor", seeds: "tf.Tensor") -> "tf.Tensor":
    """Mirror every second image; another draw than that of its part."""
    import tensorflow as tf

    chance = tf.random.stateless_uniform((), tf.random.experimental.stateless_fold_in(seeds, 1))
    return tf.where(chance < 0.5, tf.reverse(image, [1]), image)
