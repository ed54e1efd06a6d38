"""Augment a batch of images during training: flip and shift the images at random."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax
    import tensorflow as tf
    import torch

_PIXELS = 4


def mirrored_and_moved(images: "tf.Tensor", seed: "tf.Tensor") -> "tf.Tensor":
    """Flip each image horizontally with probability 1/2, and shift it at random by up to 4 pixels in each
    direction. Fill the border with black.

    ``images`` has the shape (batch, height, width, channels). ``seed`` is the random seed, which consists of
    two int32 numbers. The method is from He et al. 2015, arXiv:1512.03385, section 4.2.
    """
    import tensorflow as tf

    batch, height, width = tf.shape(images)[0], images.shape[1], images.shape[2]
    around = [[0, 0], [_PIXELS, _PIXELS], [_PIXELS, _PIXELS], [0, 0]]
    wider = tf.pad(images, around)
    chance = tf.random.stateless_uniform((3, batch, 1), seed)
    moved = tf.cast(chance[:2] * (2 * _PIXELS + 1), tf.int32)
    rows = moved[0] + tf.range(height)[tf.newaxis]
    columns = moved[1] + tf.range(width)[tf.newaxis]
    columns = tf.where(chance[2] < 0.5, tf.reverse(columns, [1]), columns)
    return tf.gather(tf.gather(wider, rows, batch_dims=1, axis=1), columns, batch_dims=1, axis=2)


def moved_in_torch(images: "torch.Tensor", draws: "torch.Generator") -> "torch.Tensor":
    """Flip and shift images like :func:`mirrored_and_moved`, in PyTorch. ``draws`` makes random numbers."""
    import torch

    batch, height, width, _ = images.shape
    wider = torch.nn.functional.pad(images, (0, 0, _PIXELS, _PIXELS, _PIXELS, _PIXELS))
    moved = torch.randint(0, 2 * _PIXELS + 1, (2, batch, 1), generator=draws)
    rows = moved[0] + torch.arange(height)
    columns = moved[1] + torch.arange(width)
    flipped = torch.rand((batch, 1), generator=draws) < 0.5
    columns = torch.where(flipped, columns.flip(1), columns)
    sample = torch.arange(batch)[:, None, None]
    return wider[sample, rows[:, :, None], columns[:, None, :]]


def moved_in_jax(images: "jax.Array", key: "jax.Array") -> "jax.Array":
    """Flip and shift images like :func:`mirrored_and_moved`, in JAX. ``key`` is the random key."""
    import jax
    import jax.numpy as jnp

    batch, height, width, _ = images.shape
    wider = jnp.pad(images, ((0, 0), (_PIXELS, _PIXELS), (_PIXELS, _PIXELS), (0, 0)))
    first, second = jax.random.split(key)
    moved = jax.random.randint(first, (2, batch, 1), 0, 2 * _PIXELS + 1)
    rows, columns = moved[0] + jnp.arange(height), moved[1] + jnp.arange(width)
    flipped = jax.random.bernoulli(second, 0.5, (batch, 1))
    columns = jnp.where(flipped, columns[:, ::-1], columns)
    return wider[jnp.arange(batch)[:, None, None], rows[:, :, None], columns[:, None, :]]
